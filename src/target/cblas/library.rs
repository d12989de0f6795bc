//! Finding libraries and opening them.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsString, c_void};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use libloading::os::unix as loader;
use thiserror::Error;

use super::call::{Gemm, GemmCall, Real, Refusal};
use super::identity::{self, Version};
use super::routine::{Routine, TYPES, Type, Variant};
use super::symbols::{Decoration, Exports, Interface};
use super::threads::Threads;
use super::width::{self, IntWidth};

/// Why a library cannot be used.
#[derive(Debug, Error)]
pub enum CblasError {
    #[error("failed to read {path}: {source}; name the file of a library with --lib")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is a directory; name the library file in it")]
    Directory { path: PathBuf },
    #[error("{path} is a pipe or a device; name a library file")]
    NotAFile { path: PathBuf },
    #[error("{path} is not an ELF file (a linker script? name the shared object itself)")]
    NotElf { path: PathBuf },
    #[error("failed to load {path}: {message}; a missing dependency needs its folder in LD_LIBRARY_PATH")]
    Load { path: PathBuf, message: String },
    #[error(
        "{path} has no GEMM: looked for cblas_sgemm with cblas_dgemm and sgemm_ with dgemm_, plain and with {decorations}"
    )]
    NoGemm { path: PathBuf, decorations: String },
    #[error("failed to find out the library's integer width ({why}): name it with --int-width 32 or --int-width 64")]
    WidthUnknown { why: String },
    #[error(
        "the library's integer width is contradictory: {claim}, but {observed}: name the true one with --int-width 32|64"
    )]
    WidthContradiction { claim: String, observed: String },
}

/// MKL loads its parts globally: without `RTLD_DEEPBIND` the `cblas_sgemm` of BLIS or the reference BLAS, opened after
/// it, calls MKL's `sgemm_` (MKL 2026.2; with `MKL_INTERFACE_LAYER=ILP64` it complains about arguments it never got).
#[cfg(target_env = "gnu")]
const KEEP_APART: i32 = libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;
#[cfg(not(target_env = "gnu"))]
const KEEP_APART: i32 = libc::RTLD_NODELETE;

/// An open BLAS. It stays loaded for the life of the process (see [`Library::open`]).
pub struct Library {
    path: PathBuf,
    exports: Exports,
    /// sgemm and dgemm.
    gemms: [Gemm; 2],
    interface: Interface,
    decoration: Decoration,
    int_width: IntWidth,
    evidence: String,
    threads: Threads,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The brand, e.g. "OpenBLAS".
    pub name: String,
    /// The real path.
    pub path: PathBuf,
    pub interface: Interface,
    pub decoration: Decoration,
    pub int_width: IntWidth,
    /// How the width was found.
    pub evidence: String,
    /// As the library gives it, or "unknown".
    pub version: String,
    /// The core type or instruction set that the library picked, where it says.
    pub core: Option<String>,
    /// Routines that can be called, by problem.
    pub routines: Vec<&'static str>,
    /// What gemm can do beside the four types: element types, strided batches.
    pub extras: Vec<&'static str>,
}

impl Library {
    /// Loads `path` with `RTLD_NOW | RTLD_LOCAL`, finds its GEMMs and its integer width, and sets it to one thread.
    ///
    /// It stays loaded, because thread pools that some libraries start do not survive `dlclose`, and its calls to
    /// itself are kept away from other libraries in the process.
    pub fn open(path: &Path) -> Result<Library, CblasError> {
        Library::open_with(path, None, 1, None)
    }

    /// Like [`Library::open`], with the integer width named by the user. Where the library exports several decorations,
    /// one that states this width is preferred. A named width that cannot be true is still an error.
    ///
    /// `threads` is how many the library may use; `core` the core type that its variable names, see [`super::Choice`].
    pub fn open_with(
        path: &Path,
        int_width: Option<IntWidth>,
        threads: u32,
        core: Option<&str>,
    ) -> Result<Library, CblasError> {
        let path = checked(path)?;
        let handle = load(&path, &mut HashSet::new())?;
        let exports = Exports::new(handle);

        let offered = exports.gemms();
        let no_gemm = || {
            let decorations = Decoration::ALL[1..].iter().map(Decoration::to_string).collect::<Vec<_>>().join(", ");
            CblasError::NoGemm { path: path.clone(), decorations }
        };
        let states_named = |&&(_, decoration): &&(Interface, Decoration)| decoration.states() == int_width;
        let preferred = int_width.and_then(|_| offered.iter().find(states_named));
        let &(interface, decoration) = preferred.or(offered.first()).ok_or_else(no_gemm)?;

        if let Some(core) = core {
            identity::number_blis_core(&exports, core);
        }
        let threads = Threads::set(&exports, decoration, threads);
        let version = Version::read(&exports, decoration);
        let config = (version.name == "OpenBLAS").then_some(version.text.as_str());
        let declared = width::declared(&exports, decoration, config);
        let load = |letter| Gemm::load(&exports, interface, decoration, letter).ok_or_else(no_gemm);
        let gemms = [load('s')?, load('d')?];
        // SAFETY: it is this library's sgemm, called with values that are legal in either width.
        let observed = unsafe { width::observe(gemms[0]) };
        let (int_width, evidence) = width::decide(int_width, declared, &observed)?;
        Ok(Library { path, exports, gemms, interface, decoration, int_width, evidence, threads })
    }

    /// Calls GEMM, or refuses an argument that breaks the rules of BLAS or does not fit the library's ints.
    ///
    /// # Safety
    /// The operands must be aligned for `real`. Elements outside mapped memory are the caller's business: a library
    /// under test may fault on any call, so call it in a process that can be lost.
    pub unsafe fn gemm(&self, real: Real, call: &GemmCall) -> Result<(), Refusal> {
        call.check()?;
        let args = call.args();
        let gemm = self.gemms[usize::from(real == Real::F64)];
        // SAFETY: the width was declared or observed, and both agree where both exist; the caller vouches for the rest.
        unsafe {
            match self.int_width {
                IntWidth::I32 => {
                    call.fits()?;
                    gemm.call::<i32>(real.passed(), &args);
                }
                IntWidth::I64 => gemm.call::<i64>(real.passed(), &args),
            }
        }
        Ok(())
    }

    /// The first of these functions, named without `cblas_`, that the library exports. Of a library without CBLAS, a gemm of
    /// Fortran.
    pub(super) fn function(&self, names: &[String]) -> Option<*mut c_void> {
        names.iter().find_map(|name| self.exports.address(&self.exported(name)?))
    }

    /// The name under which a function would be exported.
    pub(super) fn exported(&self, name: &str) -> Option<String> {
        match self.interface {
            Interface::Cblas => Some(self.decoration.c_name(&format!("cblas_{name}"))),
            Interface::Fortran => {
                let letter = name.strip_suffix("gemm").and_then(|l| l.chars().next()).filter(|_| name.len() == 5)?;
                Some(self.decoration.gemm_name(Interface::Fortran, letter))
            }
        }
    }

    pub(super) fn interface(&self) -> Interface {
        self.interface
    }

    /// Brand, version and core type.
    pub(super) fn version(&self) -> Version {
        Version::read(&self.exports, self.decoration)
    }

    pub(super) fn threads(&self) -> &Threads {
        &self.threads
    }

    pub fn int_width(&self) -> IntWidth {
        self.int_width
    }

    pub fn describe(&self) -> Description {
        let version = Version::read(&self.exports, self.decoration);
        Description {
            name: version.name.to_string(),
            path: self.path.clone(),
            interface: self.interface,
            decoration: self.decoration,
            int_width: self.int_width,
            evidence: self.evidence.clone(),
            version: version.text,
            core: version.core,
            routines: Routine::all().filter(|r| self.has(r, Variant::Plain, |_| true)).map(|r| r.problem).collect(),
            extras: self.extras(),
        }
    }

    fn has(&self, routine: &Routine, variant: Variant, wanted: impl Fn(&Type) -> bool) -> bool {
        TYPES.into_iter().filter(wanted).any(|of| self.function(&routine.functions(of, variant)).is_some())
    }

    fn extras(&self) -> Vec<&'static str> {
        let Some(gemm) = Routine::find("gemm") else { return vec![] };
        let mixed = TYPES.iter().map(|of| of.dtype).filter(|dtype| dtype.contains('_'));
        let mut extras: Vec<&str> =
            mixed.filter(|dtype| self.has(&gemm, Variant::Plain, |t| t.dtype == *dtype)).collect();
        if self.has(&gemm, Variant::Batch, |_| true) {
            extras.push("strided batches");
        }
        extras
    }

    /// What a report needs to name this library again. Reads and hashes the files: not for inner loops.
    ///
    /// `library` is the file that was opened; `gemm object` holds the symbol that is called and `brand object` the
    /// library's core, each listed if it is another file.
    pub fn identity(&self) -> Vec<(String, String)> {
        let version = Version::read(&self.exports, self.decoration);
        let symbol = self.decoration.gemm_name(self.interface, 's');
        let mut facts = vec![
            ("name".to_string(), version.name.to_string()),
            ("version".to_string(), version.text.clone()),
            ("core".to_string(), version.core.clone().unwrap_or_else(|| "unknown".to_string())),
            ("interface".to_string(), format!("{} ({symbol})", self.interface)),
            ("decoration".to_string(), self.decoration.to_string()),
            ("int width".to_string(), format!("{} ({})", self.int_width, self.evidence)),
            ("threads".to_string(), self.threads.to_string()),
        ];
        let mut seen = HashSet::new();
        let objects = [
            ("library", Some(self.path.clone())),
            ("gemm object", self.exports.address(&symbol).and_then(identity::object_of)),
            ("brand object", version.object(&self.exports)),
        ];
        for (role, object) in objects {
            if let Some(object) = object.filter(|object| seen.insert(object.clone())) {
                facts.extend(identity::file_facts(role, &object));
            }
        }
        facts
    }
}

/// Opens a library and says what it is.
pub fn describe(path: &Path) -> Result<Description, CblasError> {
    Library::open(path).map(|library| library.describe())
}

/// The real path, if it can be a shared object: the loader's own complaints do not tell these cases apart.
fn checked(path: &Path) -> Result<PathBuf, CblasError> {
    let failed = |source| CblasError::Io { path: path.to_path_buf(), source };
    let real = fs::canonicalize(path).map_err(failed)?;
    // Asked before opening: opening a pipe would wait for its other end.
    let kind = fs::metadata(&real).map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(CblasError::Directory { path: path.to_path_buf() });
    }
    if !kind.is_file() {
        return Err(CblasError::NotAFile { path: path.to_path_buf() });
    }
    if !is_elf(&real).map_err(failed)? {
        return Err(CblasError::NotElf { path: path.to_path_buf() });
    }
    Ok(real)
}

/// Loads a library, and before it what it needs and has beside it: wheels bundle their Fortran runtime in one folder.
///
/// `tried` holds what was loaded on the way: libraries may need each other in a circle.
fn load(path: &Path, tried: &mut HashSet<PathBuf>) -> Result<loader::Library, CblasError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    loop {
        let message = match open(path) {
            Ok(handle) => return Ok(handle),
            Err(message) => message,
        };
        let needed = message.split_once(": cannot open shared object file").map(|(name, _)| folder.join(name));
        match needed.filter(|file| file.is_file() && tried.insert(file.clone())) {
            // Stays loaded, as the library that needs it; what this one lacks shows when it is loaded again.
            Some(file) => {
                if let Err(CblasError::Load { message, .. }) = load(&file, tried).map(drop) {
                    return Err(CblasError::Load { path: path.to_path_buf(), message });
                }
            }
            None => return Err(CblasError::Load { path: path.to_path_buf(), message }),
        }
    }
}

/// The loader's answer.
fn open(path: &Path) -> Result<loader::Library, String> {
    let flags = loader::RTLD_NOW | loader::RTLD_LOCAL | KEEP_APART;
    // SAFETY: loading runs the library's constructors; that is what the user asked for by naming it.
    unsafe { loader::Library::open(Some(path), flags) }.map_err(|error| message_of(&error))
}

fn is_elf(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    fs::File::open(path)?.take(4).read_to_end(&mut magic)?;
    Ok(magic == *b"\x7fELF")
}

/// The loader's text, which libloading keeps in the error's source.
fn message_of(error: &libloading::Error) -> String {
    match error {
        libloading::Error::DlOpen { desc } => format!("{desc:?}").trim_matches('"').to_string(),
        other => other.to_string(),
    }
}

/// The BLAS libraries in the loader's usual folders and in `LD_LIBRARY_PATH`, as real paths without repetition.
pub fn find() -> Vec<PathBuf> {
    find_in(&folders(std::env::var_os("LD_LIBRARY_PATH")))
}

/// The first file of this name in those folders.
pub fn find_file(name: &str) -> Option<PathBuf> {
    let folders = folders(std::env::var_os("LD_LIBRARY_PATH"));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The same as [`find`] in these folders, in their order.
pub(super) fn find_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for folder in folders {
        for file in entries(folder).into_iter().filter(|file| is_known_name(file)) {
            let Ok(real) = fs::canonicalize(&file) else {
                continue;
            };
            if real.is_file() && is_elf(&real).unwrap_or(false) && seen.insert(real.clone()) {
                found.push(real);
            }
        }
    }
    found
}

/// Sorted, so that the order does not depend on the file system.
fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// `libNAME.so`, `libNAME.so.1.2`, and for OpenBLAS and BLIS names that go on before the `.so`.
fn is_known_name(path: &Path) -> bool {
    const EXACT: [&str; 6] = ["libcblas", "libgslcblas", "libblas", "libblas64", "libf77blas", "libmkl_rt"];
    const PREFIX: [&str; 3] = ["libopenblas", "libblis", "libscipy_openblas"];
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let Some((stem, end)) = name.rsplit_once(".so") else {
        return false;
    };
    let versioned = end.is_empty() || end.starts_with('.') && end.bytes().all(|b| b == b'.' || b.is_ascii_digit());
    // Debian's alternatives are called libblas.so.3-x86_64-linux-gnu.
    let alternative = end.starts_with('.') && path.parent() == Some(Path::new("/etc/alternatives"));
    (versioned || alternative) && (EXACT.contains(&stem) || PREFIX.iter().any(|prefix| stem.starts_with(prefix)))
}

/// `LD_LIBRARY_PATH`, the folders of `ld.so.conf` and the built-in ones, each with its subfolders for BLAS builds.
fn folders(ld_library_path: Option<OsString>) -> Vec<PathBuf> {
    let mut tops: Vec<PathBuf> = ld_library_path.iter().flat_map(std::env::split_paths).collect();
    tops.retain(|top| top.is_absolute());
    tops.push(PathBuf::from("/etc/alternatives"));
    configured(Path::new("/etc/ld.so.conf"), 0, &mut tops);
    tops.extend(["/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    tops.push(PathBuf::from("/opt/intel/oneapi/mkl/latest/lib"));
    let mut all = Vec::new();
    for top in tops {
        let is_build = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            ["blas", "blis", "atlas", "mkl"].iter().any(|brand| name.contains(brand)) && path.is_dir()
        };
        let builds: Vec<PathBuf> = entries(&top).into_iter().filter(is_build).collect();
        all.push(top);
        all.extend(builds);
    }
    all
}

/// Reads the folders in a file of `ld.so.conf`'s format; its `include` lines name `FOLDER/*.conf`.
fn configured(file: &Path, depth: u32, folders: &mut Vec<PathBuf>) {
    let Ok(text) = fs::read_to_string(file) else {
        return;
    };
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < 4 => {
                let pattern = Path::new(pattern.trim());
                let extension = pattern.extension();
                for part in entries(pattern.parent().unwrap_or(Path::new("/"))) {
                    if part.extension() == extension {
                        configured(&part, depth + 1, folders);
                    }
                }
            }
            Some(_) => {}
            None if line.starts_with('/') => folders.push(PathBuf::from(line)),
            None => {}
        }
    }
}
