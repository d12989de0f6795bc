//! The names under which libraries export their functions.

use std::ffi::c_void;
use std::fmt;

use super::width::IntWidth;

/// How a build decorates its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoration {
    /// `cblas_sgemm`, `sgemm_`
    Plain,
    /// `cblas_sgemm64_`, `sgemm_64_`: OpenBLAS built with `SYMBOLSUFFIX=64_`
    Suffix64,
    /// `scipy_cblas_sgemm`, `scipy_sgemm_`: wheels of scipy-openblas32
    Scipy,
    /// `scipy_cblas_sgemm64_`, `scipy_sgemm_64_`: wheels of scipy-openblas64
    Scipy64,
    /// `cblas_sgemm_64`, `sgemm_64_`: MKL and the extended API of the reference BLAS 3.11 and later
    Extended64,
}

impl Decoration {
    /// In the order in which they are tried: the plain name is what a program links by default.
    pub(super) const ALL: [Decoration; 5] =
        [Decoration::Plain, Decoration::Suffix64, Decoration::Scipy, Decoration::Scipy64, Decoration::Extended64];

    fn affixes(self) -> (&'static str, &'static str) {
        match self {
            Decoration::Plain => ("", ""),
            Decoration::Suffix64 => ("", "64_"),
            Decoration::Scipy => ("scipy_", ""),
            Decoration::Scipy64 => ("scipy_", "64_"),
            Decoration::Extended64 => ("", "_64"),
        }
    }

    /// The exported name of a C function such as `cblas_sgemm` or `openblas_get_config`.
    pub(super) fn c_name(self, base: &str) -> String {
        let (prefix, suffix) = self.affixes();
        format!("{prefix}{base}{suffix}")
    }

    /// The exported name of a Fortran subroutine such as `sgemm`.
    fn fortran_name(self, base: &str) -> String {
        let (prefix, suffix) = self.affixes();
        match self {
            Decoration::Extended64 => format!("{base}_64_"),
            _ => format!("{prefix}{base}_{suffix}"),
        }
    }

    pub(super) fn gemm_name(self, interface: Interface, letter: char) -> String {
        match interface {
            Interface::Cblas => self.c_name(&format!("cblas_{letter}gemm")),
            Interface::Fortran => self.fortran_name(&format!("{letter}gemm")),
        }
    }

    /// The width that the decoration states, if it states one. `scipy_` alone does not: it is a prefix.
    pub(super) fn states(self) -> Option<IntWidth> {
        match self {
            Decoration::Plain | Decoration::Scipy => None,
            Decoration::Suffix64 | Decoration::Scipy64 | Decoration::Extended64 => Some(IntWidth::I64),
        }
    }
}

impl fmt::Display for Decoration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decoration::Plain => "none",
            Decoration::Suffix64 => "64_",
            Decoration::Scipy => "scipy_",
            Decoration::Scipy64 => "scipy_...64_",
            Decoration::Extended64 => "_64",
        })
    }
}

/// Which of the two prototypes of BLAS is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// `cblas_sgemm`: arguments by value, called with column-major order.
    Cblas,
    /// `sgemm_`: arguments by reference, lengths of the two characters trailing.
    Fortran,
}

impl Interface {
    pub(super) const ALL: [Interface; 2] = [Interface::Cblas, Interface::Fortran];
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interface::Cblas => "CBLAS",
            Interface::Fortran => "Fortran",
        })
    }
}

/// A loaded object's exports, its dependencies' included: this is what `dlsym` on a handle searches.
pub(super) struct Exports {
    handle: libloading::os::unix::Library,
}

impl Exports {
    pub(super) fn new(handle: libloading::os::unix::Library) -> Exports {
        Exports { handle }
    }

    /// The address of a symbol, never null.
    pub(super) fn address(&self, name: &str) -> Option<*mut c_void> {
        // SAFETY: the symbol is taken as an opaque address; nothing is read or called through it here.
        let symbol = unsafe { self.handle.get::<*mut c_void>(name.as_bytes()) }.ok()?;
        let address = symbol.into_raw();
        (!address.is_null()).then_some(address)
    }

    /// A symbol as a function pointer of type `F`.
    ///
    /// # Safety
    /// `F` must be the type of a function pointer with the symbol's true signature.
    pub(super) unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        assert_eq!(size_of::<F>(), size_of::<*mut c_void>(), "F is a function pointer");
        // SAFETY: the address is not null and F has its size; the caller vouches for the signature. Objects are loaded
        // with RTLD_NODELETE, so the address stays valid for the life of the process.
        self.address(name).map(|address| unsafe { std::mem::transmute_copy::<*mut c_void, F>(&address) })
    }

    /// The first of `decoration`'s name and the plain name that is exported.
    pub(super) fn decorated(&self, decoration: Decoration, base: &str) -> Option<String> {
        [decoration.c_name(base), base.to_string()].into_iter().find(|name| self.address(name).is_some())
    }

    /// All ways in which this object offers both `sgemm` and `dgemm`, most usual first.
    pub(super) fn gemms(&self) -> Vec<(Interface, Decoration)> {
        let mut offered = Vec::new();
        for interface in Interface::ALL {
            for decoration in Decoration::ALL {
                if ['s', 'd'].iter().all(|&letter| self.address(&decoration.gemm_name(interface, letter)).is_some()) {
                    offered.push((interface, decoration));
                }
            }
        }
        offered
    }
}
