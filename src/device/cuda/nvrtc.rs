//! NVRTC, the compiler that CUDA ships as a library, and a cache of what it made.

use super::libraries;
use libloading::Library;
use sha2::{Digest, Sha256};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::ptr;

/// Overrides the folder of compiled kernels.
pub const CACHE_VARIABLE: &str = "SHRINKFAULT_CACHE";

type Program = *mut c_void;
type Text = *const c_char;

/// NVRTC, opened.
#[derive(Debug)]
pub struct Compiler {
    library: Library,
    pub path: PathBuf,
    /// Major and minor version.
    pub version: (i32, i32),
}

/// `sm_90` for compute capability 9.0.
pub fn architecture(capability: (u32, u32)) -> String {
    format!("sm_{}{}", capability.0, capability.1)
}

/// Machine code of a source for an architecture, from the cache where it was made before.
///
/// # Errors
/// One sentence: no NVRTC, or the first error that it found in the source.
pub fn compile(name: &str, source: &str, architecture: &str, options: &[String]) -> Result<Vec<u8>, String> {
    let compiler = Compiler::open()?;
    let options: Vec<String> = options.iter().cloned().chain(includes(&compiler.path)).collect();
    let options = options.as_slice();
    let file = cache().map(|folder| folder.join(key(&compiler, source, architecture, options)));
    if let Some(image) = file.as_deref().and_then(|f| std::fs::read(f).ok()).filter(|image| !image.is_empty()) {
        return Ok(image);
    }
    let image = compiler.compile(name, source, architecture, options)?;
    if let Some(file) = file {
        // Without a cache the next process compiles again.
        let _ = keep(&file, &image);
    }
    Ok(image)
}

/// The folder of CUDA's headers that belongs to a compiler, as an option: beside the folder of the library.
fn includes(library: &Path) -> Option<String> {
    let whole = std::fs::canonicalize(library).unwrap_or_else(|_| library.to_owned());
    let near = whole.ancestors().skip(2).take(3).map(|folder| folder.join("include"));
    let folder = near.chain(["/usr/local/cuda/include".into()]).find(|f| f.join("cuda_fp16.h").is_file())?;
    Some(format!("--include-path={}", folder.display()))
}

/// The folder of compiled kernels, where this user has one.
fn cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable(CACHE_VARIABLE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|p| p.join("shrinkfault")))
        .or_else(|| variable("HOME").map(|p| p.join(".cache/shrinkfault")))
}

fn key(compiler: &Compiler, source: &str, architecture: &str, options: &[String]) -> String {
    let mut hash = Sha256::new();
    for part in
        [source, architecture, &options.join("\n"), &format!("{:?} {}", compiler.version, compiler.path.display())]
    {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut name = String::new();
    for byte in &hash.finalize()[..16] {
        let _ = write!(name, "{byte:02x}");
    }
    format!("{name}-{architecture}.cubin")
}

/// Whole or not at all: workers start side by side.
fn keep(file: &Path, image: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let part = file.with_extension(format!("{}.part", std::process::id()));
    std::fs::write(&part, image)?;
    std::fs::rename(&part, file)
}

impl Compiler {
    /// # Errors
    /// One sentence, where NVRTC is not found or does not answer.
    pub fn open() -> Result<Compiler, String> {
        let opened = libraries::open("nvrtc", None)?;
        let mut compiler = Compiler { library: opened.library, path: opened.path, version: (0, 0) };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the prototype of nvrtc.h; both results outlive the call.
        let status = unsafe {
            compiler.symbol::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>("nvrtcVersion")?(
                &mut major, &mut minor,
            )
        };
        compiler.status("nvrtcVersion", status)?;
        compiler.version = (major, minor);
        Ok(compiler)
    }

    /// # Safety
    /// `F` is the function's prototype in nvrtc.h.
    unsafe fn symbol<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: the caller's promise.
        let found = unsafe { self.library.get::<F>(name.as_bytes()) };
        found.map(|f| *f).map_err(|_| format!("{} has no {name}", self.path.display()))
    }

    fn status(&self, call: &str, status: c_int) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the prototype of nvrtc.h; it returns a string that is never freed.
        let text = unsafe {
            let name = self.symbol::<unsafe extern "C" fn(c_int) -> Text>("nvrtcGetErrorString")?;
            CStr::from_ptr(name(status)).to_string_lossy().into_owned()
        };
        Err(format!("{call} failed: {text} ({status})"))
    }

    /// Machine code of a source for an architecture such as `sm_90`.
    ///
    /// # Errors
    /// The first error that the compiler found, as one line.
    pub fn compile(&self, name: &str, source: &str, architecture: &str, options: &[String]) -> Result<Vec<u8>, String> {
        let text = |s: &str| CString::new(s).map_err(|_| format!("{name} holds a zero byte"));
        let (file, source) = (text(name)?, text(source)?);
        let mut all = vec![text(&format!("--gpu-architecture={architecture}"))?, text("--std=c++17")?];
        all.push(text("--generate-line-info")?);
        for option in options {
            all.push(text(option)?);
        }
        let pointers: Vec<Text> = all.iter().map(|o| o.as_ptr()).collect();
        let mut program: Program = ptr::null_mut();
        type Create = unsafe extern "C" fn(*mut Program, Text, Text, c_int, *const Text, *const Text) -> c_int;
        type Compile = unsafe extern "C" fn(Program, c_int, *const Text) -> c_int;
        type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
        // SAFETY: prototypes of nvrtc.h; every string ends in 0 and outlives its call.
        unsafe {
            let create = self.symbol::<Create>("nvrtcCreateProgram")?;
            self.status(
                "nvrtcCreateProgram",
                create(&mut program, source.as_ptr(), file.as_ptr(), 0, ptr::null(), ptr::null()),
            )?;
            let status =
                self.symbol::<Compile>("nvrtcCompileProgram")?(program, pointers.len() as c_int, pointers.as_ptr());
            let image = if status == 0 {
                self.take(program, "nvrtcGetCUBINSize", "nvrtcGetCUBIN")
            } else {
                let log = self.take(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog").unwrap_or_default();
                Err(first_error(name, &String::from_utf8_lossy(&log)).unwrap_or_else(|| {
                    self.status("nvrtcCompileProgram", status)
                        .err()
                        .unwrap_or_else(|| format!("{name} does not compile"))
                }))
            };
            self.symbol::<Destroy>("nvrtcDestroyProgram")?(&mut program);
            image
        }
    }

    /// # Safety
    /// `program` is one of this library, and the names are of a pair of functions that tell the size and copy the bytes.
    unsafe fn take(&self, program: Program, size: &str, bytes: &str) -> Result<Vec<u8>, String> {
        let mut count = 0usize;
        // SAFETY: prototypes of nvrtc.h; the buffer is as long as the library said.
        unsafe {
            let told = self.symbol::<unsafe extern "C" fn(Program, *mut usize) -> c_int>(size)?(program, &mut count);
            self.status(size, told)?;
            let mut out = vec![0u8; count];
            let copied =
                self.symbol::<unsafe extern "C" fn(Program, *mut u8) -> c_int>(bytes)?(program, out.as_mut_ptr());
            self.status(bytes, copied)?;
            Ok(out)
        }
    }
}

/// The first error of a log, with its place: `file.cu(3): error: ...`.
fn first_error(name: &str, log: &str) -> Option<String> {
    let line = log.lines().find(|l| l.contains("error"))?.trim();
    Some(format!("{name} does not compile: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_of_a_log_is_named_with_its_line() {
        let log =
            "k.cu(2): warning: unused\nk.cu(3): error: identifier \"x\" is undefined\n  x = 1;\n\n1 error detected\n";
        let said = first_error("k.cu", log).unwrap();
        assert_eq!(said, "k.cu does not compile: k.cu(3): error: identifier \"x\" is undefined");
        assert_eq!(first_error("k.cu", ""), None);
    }

    #[test]
    fn an_image_is_kept_whole_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/image.cubin");
        keep(&file, b"code").unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"code");
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}
