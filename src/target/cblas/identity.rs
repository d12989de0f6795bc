//! Which file answered: paths, versions, build ids and digests.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Endianness, Object};
use sha2::{Digest, Sha256};

use super::symbols::{Decoration, Exports};

const UNKNOWN: &str = "unknown";

/// Name of a library that exports no marker of a brand.
pub const NO_BRAND: &str = "BLAS of no known brand";

/// What a library exports about itself.
pub(super) struct Version {
    /// `OpenBLAS`, `BLIS`, `MKL`, `ATLAS`, or that no marker of these is exported.
    pub(super) name: &'static str,
    pub(super) text: String,
    /// The core type that OpenBLAS or BLIS picked, or the instructions that MKL uses, where it says.
    pub(super) core: Option<String>,
    /// Exported by the object that computes, which may be a dependency of the one that was opened.
    marker: Option<String>,
}

impl Version {
    pub(super) fn read(exports: &Exports, decoration: Decoration) -> Version {
        let marked = |name, text, core, marker| Version { name, text, core, marker: Some(marker) };
        if let Some(marker) = exports.decorated(decoration, "openblas_get_config") {
            let core =
                exports.decorated(decoration, "openblas_get_corename").and_then(|name| text_from(exports, &name));
            return marked("OpenBLAS", text_from(exports, &marker).unwrap_or(UNKNOWN.into()), core, marker);
        }
        let marker = "bli_info_get_version_str".to_string();
        if let Some(text) = text_from(exports, &marker) {
            return marked("BLIS", text, blis_core(exports), marker);
        }
        let marker = "MKL_Get_Version_String".to_string();
        if exports.address(&marker).is_some() {
            let text = mkl_version(exports, &marker).unwrap_or(UNKNOWN.into());
            return marked("MKL", text, mkl_core(exports), marker);
        }
        let marker = "ATL_buildinfo".to_string();
        if exports.address(&marker).is_some() {
            // ATL_buildinfo prints to stdout, which may carry a report: not called.
            return marked("ATLAS", UNKNOWN.into(), None, marker);
        }
        Version { name: NO_BRAND, text: UNKNOWN.into(), core: None, marker: None }
    }

    /// The object that exports the marker.
    pub(super) fn object(&self, exports: &Exports) -> Option<PathBuf> {
        object_of(exports.address(self.marker.as_deref()?)?)
    }
}

/// Calls a `const char *f(void)`.
fn text_from(exports: &Exports, name: &str) -> Option<String> {
    // SAFETY: openblas_get_config, openblas_get_corename and bli_info_get_version_str have this type.
    let text = unsafe { exports.function::<unsafe extern "C" fn() -> *const c_char>(name)?() };
    // SAFETY: they return a static string that ends in NUL, or null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_string())
}

/// The sub-configuration whose kernels BLIS runs.
fn blis_core(exports: &Exports) -> Option<String> {
    // SAFETY: `arch_t bli_arch_query_id(void)` with a C enum, `char *bli_arch_string(arch_t)` (frame/base/bli_arch.h).
    let (id, name) = unsafe {
        (
            exports.function::<unsafe extern "C" fn() -> c_int>("bli_arch_query_id")?,
            exports.function::<unsafe extern "C" fn(c_int) -> *const c_char>("bli_arch_string")?,
        )
    };
    // SAFETY: the id is one that the library knows.
    let text = unsafe { name(id()) };
    // SAFETY: it returns a static string that ends in NUL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// Gives BLIS the number of a sub-configuration that is named: 0.9 takes numbers only, and reads a name as 0. Called before
/// BLIS looks at its variable, which it does in its first call.
pub(super) fn number_blis_core(exports: &Exports, wanted: &str) {
    // SAFETY: `char *bli_arch_string(arch_t)` as above.
    let name = unsafe { exports.function::<unsafe extern "C" fn(c_int) -> *const c_char>("bli_arch_string") };
    let Some(name) = name else { return };
    for number in 0..64 {
        // SAFETY: numbers count from 0 on, and `generic` is the last of them, where this ends.
        let text = unsafe { name(number) };
        if text.is_null() {
            return;
        }
        // SAFETY: it is a static string that ends in NUL.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        if text.eq_ignore_ascii_case(wanted) {
            // SAFETY: this process has one thread, so nothing reads the environment meanwhile.
            unsafe { std::env::set_var("BLIS_ARCH_TYPE", number.to_string()) };
            return;
        }
        if text == "generic" {
            return;
        }
    }
}

/// The instructions for which MKL picked its kernels, in its own words.
fn mkl_core(exports: &Exports) -> Option<String> {
    /// `MKLVersion` of mkl_types.h.
    #[repr(C)]
    struct MklVersion {
        numbers: [c_int; 3],
        texts: [*const c_char; 4],
    }
    const PROCESSOR: usize = 2;
    let mut version = MklVersion { numbers: [0; 3], texts: [std::ptr::null(); 4] };
    // SAFETY: `void MKL_Get_Version(MKLVersion *)`.
    unsafe { exports.function::<unsafe extern "C" fn(*mut MklVersion)>("MKL_Get_Version")?(&mut version) };
    let text = version.texts[PROCESSOR];
    // SAFETY: it is a static string that ends in NUL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_string())
}

/// `void MKL_Get_Version_String(char *buffer, int length)`; the lower-case name is Fortran's.
fn mkl_version(exports: &Exports, name: &str) -> Option<String> {
    let mut buffer = [0u8; 256];
    // SAFETY: this is the prototype in mkl_service.h; the length keeps it inside the buffer, whose last byte stays NUL.
    unsafe {
        exports.function::<unsafe extern "C" fn(*mut c_char, c_int)>(name)?(buffer.as_mut_ptr().cast(), 255);
    }
    Some(CStr::from_bytes_until_nul(&buffer).ok()?.to_string_lossy().trim().to_string())
}

/// The file that an address of code or data was loaded from.
pub(super) fn object_of(address: *mut c_void) -> Option<PathBuf> {
    // SAFETY: Dl_info is plain data; dladdr fills it in or returns 0.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: dladdr only looks the address up.
    if unsafe { libc::dladdr(address, &mut info) } == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name belongs to the loader, ends in NUL and lives while the object is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    std::fs::canonicalize(Path::new(OsStr::from_bytes(name.to_bytes()))).ok()
}

/// What a file says about itself, as pairs whose names start with `role`. What cannot be read is "unknown".
pub fn file_facts(role: &str, path: &Path) -> Vec<(String, String)> {
    let mut facts = vec![(role.to_string(), path.display().to_string())];
    let mut add = |what: &str, value: Option<String>| {
        facts.push((format!("{role} {what}"), value.unwrap_or_else(|| UNKNOWN.to_string())));
    };
    let data = std::fs::read(path).ok();
    let data = data.as_deref();
    add("soname", data.and_then(soname));
    add("bytes", data.map(|data| data.len().to_string()));
    add("build id", data.and_then(build_id));
    add("sha256", data.map(|data| hex(&Sha256::digest(data))));
    facts
}

fn build_id(data: &[u8]) -> Option<String> {
    object::File::parse(data).ok()?.build_id().ok()?.map(hex)
}

fn soname(data: &[u8]) -> Option<String> {
    let file = ElfFile64::<Endianness>::parse(data).ok()?;
    let (endian, sections) = (file.endian(), file.elf_header().sections(file.endian(), data).ok()?);
    let (entries, strings) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, strings).ok()?;
    let entry = entries.iter().find(|entry| entry.tag32(endian) == Some(object::elf::DT_SONAME))?;
    Some(String::from_utf8_lossy(entry.string(endian, strings).ok()?).into_owned())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
