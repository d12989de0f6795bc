//! The driver library: whether it is there, and its statuses as sentences.

use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::OnceLock;

/// Names of the driver's library, as its packages install it.
const DRIVER: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// A status of the driver other than success.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {name} ({code}), {text}")]
pub struct CudaError {
    pub call: &'static str,
    pub code: u32,
    /// As in cuda.h: `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    pub text: String,
}

impl CudaError {
    /// Whether memory of the card, or room for its tables, ran out: another moment may do.
    pub fn is_out_of_memory(&self) -> bool {
        self.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
    }

    /// Whether work on the card ended in a failure that makes the context useless: only a new process helps.
    pub fn is_sticky(&self) -> bool {
        use CUresult::*;
        [
            CUDA_ERROR_ILLEGAL_ADDRESS,
            CUDA_ERROR_LAUNCH_FAILED,
            CUDA_ERROR_HARDWARE_STACK_ERROR,
            CUDA_ERROR_ILLEGAL_INSTRUCTION,
            CUDA_ERROR_MISALIGNED_ADDRESS,
            CUDA_ERROR_INVALID_ADDRESS_SPACE,
            CUDA_ERROR_INVALID_PC,
            CUDA_ERROR_LAUNCH_TIMEOUT,
            CUDA_ERROR_ECC_UNCORRECTABLE,
            CUDA_ERROR_ASSERT,
        ]
        .iter()
        .any(|known| *known as u32 == self.code)
    }

    /// Whether the status says that an access left its memory; the other sticky ones are crashes, that of a misaligned address
    /// too.
    pub fn is_memory(&self) -> bool {
        use CUresult::*;
        let memory = [CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_ADDRESS_SPACE];
        memory.iter().any(|known| *known as u32 == self.code)
    }

    /// Whether an access left mapped memory.
    pub fn is_illegal_address(&self) -> bool {
        self.code == CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as u32
    }
}

/// Ok on success, else the status with its name.
///
/// # Errors
/// Any other status.
pub(super) fn check(call: &'static str, status: CUresult) -> Result<(), CudaError> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    type Lookup = unsafe fn(CUresult, *mut *const c_char) -> CUresult;
    let told = |lookup: Lookup| {
        let mut text = ptr::null();
        // SAFETY: `text` outlives the call; what the driver stores there is a string of its own that is never freed.
        match unsafe { lookup(status, &mut text) } {
            CUresult::CUDA_SUCCESS if !text.is_null() => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
            _ => "a status without a name".to_owned(),
        }
    };
    Err(CudaError { call, code: status as u32, name: told(sys::cuGetErrorName), text: told(sys::cuGetErrorString) })
}

/// Loads and initialises the driver, once per process.
///
/// # Errors
/// One sentence: no driver, or one that does not start.
pub(super) fn start() -> Result<(), String> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    STARTED.get_or_init(load).clone()
}

fn load() -> Result<(), String> {
    // The bindings panic where the library is missing, so it is opened here first; they find it under the same names.
    // SAFETY: the driver's library has no initialisers that touch memory of this program.
    let opened = DRIVER.iter().find_map(|name| unsafe { libloading::Library::new(name) }.ok());
    let Some(library) = opened else {
        return Err(format!("no NVIDIA driver: {} was not found", DRIVER[0]));
    };
    std::mem::forget(library);
    // SAFETY: no preconditions.
    check("cuInit", unsafe { sys::cuInit(0) }).map_err(|e| format!("the NVIDIA driver does not start: {e}"))
}

/// Version of the driver's interface: 13000 is CUDA 13.0.
///
/// # Errors
/// Where the driver does not say.
pub(super) fn version() -> Result<i32, CudaError> {
    let mut version = 0;
    // SAFETY: `version` outlives the call.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
    Ok(version)
}

/// Number of GPUs that this process may use.
///
/// # Errors
/// One sentence, where there is no driver or it does not start.
pub fn count() -> Result<usize, String> {
    start()?;
    let mut count = 0;
    // SAFETY: `count` outlives the call.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) }).map_err(|e| e.to_string())?;
    Ok(usize::try_from(count).unwrap_or(0))
}
