//! One GPU: its context, memory outside the arena, modules and launches.
//!
//! Everything runs on the null stream of the primary context, in order: what a library launches without a stream of its own
//! comes after what was filled and before what is compared.

use super::driver::{self, CudaError, check};
use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction, CUmodule};
use std::ffi::{CString, c_void};
use std::ptr;
use std::rc::Rc;

/// A GPU with its primary context, current on the thread that opened it.
#[derive(Debug)]
pub struct Gpu {
    pub(super) device: sys::CUdevice,
    pub ordinal: usize,
    pub name: String,
    /// `0000:00:06.0`.
    pub bus: String,
    /// Major and minor.
    pub capability: (u32, u32),
    pub memory_bytes: u64,
    /// Whether pages can be mapped at chosen addresses.
    pub can_map: bool,
    /// Whether a display hangs on it, or launches may be ended after seconds.
    pub has_watchdog: bool,
    /// 13000 is CUDA 13.0.
    pub driver_version: u32,
}

impl Gpu {
    /// Opens a GPU by its number among the visible ones.
    ///
    /// # Errors
    /// One sentence.
    pub fn open(ordinal: usize) -> Result<Rc<Gpu>, String> {
        let count = driver::count()?;
        if ordinal >= count {
            return Err(format!("there is no GPU {ordinal}; the driver shows {count}"));
        }
        Gpu::retain(ordinal).map(Rc::new).map_err(|e| format!("GPU {ordinal} cannot be used: {e}"))
    }

    fn retain(ordinal: usize) -> Result<Gpu, CudaError> {
        let (mut device, mut context) = (0, ptr::null_mut());
        let (mut name, mut bus) = ([0; 128], [0; 32]);
        let mut memory_bytes = 0;
        // SAFETY: every result outlives its call, and the buffers are as long as said.
        unsafe {
            check("cuDeviceGet", sys::cuDeviceGet(&mut device, ordinal as i32))?;
            check("cuDeviceGetName", sys::cuDeviceGetName(name.as_mut_ptr(), 127, device))?;
            check("cuDeviceGetPCIBusId", sys::cuDeviceGetPCIBusId(bus.as_mut_ptr(), 31, device))?;
            check("cuDeviceTotalMem", sys::cuDeviceTotalMem_v2(&mut memory_bytes, device))?;
            check("cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRetain(&mut context, device))?;
            check("cuCtxSetCurrent", sys::cuCtxSetCurrent(context))?;
        }
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: `value` outlives the call.
            check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
            Ok(value)
        };
        use CUdevice_attribute::*;
        let text = |bytes: &[std::ffi::c_char]| -> String {
            bytes.iter().take_while(|b| **b != 0).map(|b| *b as u8 as char).collect()
        };
        Ok(Gpu {
            device,
            ordinal,
            name: text(&name),
            bus: text(&bus).to_lowercase(),
            capability: (
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
            ),
            memory_bytes: memory_bytes as u64,
            can_map: attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)? != 0,
            has_watchdog: attribute(CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT)? != 0,
            driver_version: driver::version()? as u32,
        })
    }

    /// Waits for everything that was launched.
    ///
    /// # Errors
    /// The status of the first launch that failed; see [`CudaError::is_sticky`].
    pub fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the context is current on this thread.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    /// Bytes of the card's memory that nobody uses.
    ///
    /// # Errors
    /// Where the driver does not say.
    pub fn free_bytes(&self) -> Result<u64, CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both results outlive the call.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free as u64)
    }

    /// Memory of the card, outside the arena.
    ///
    /// # Errors
    /// Where there is not enough.
    pub fn buffer(&self, bytes: u64) -> Result<Buffer, CudaError> {
        let mut address = 0;
        let bytes = bytes.max(256);
        // SAFETY: the result outlives the call.
        check("cuMemAlloc", unsafe { sys::cuMemAlloc_v2(&mut address, bytes as usize) })?;
        Ok(Buffer { address, bytes })
    }

    /// Memory of the host that the card reads quickly.
    ///
    /// # Errors
    /// Where there is not enough.
    pub fn host_buffer(&self, bytes: u64) -> Result<HostBuffer, CudaError> {
        let mut start = ptr::null_mut();
        let bytes = bytes.max(256) as usize;
        // SAFETY: the result outlives the call.
        check("cuMemHostAlloc", unsafe { sys::cuMemHostAlloc(&mut start, bytes, 0) })?;
        Ok(HostBuffer { start: start.cast(), bytes })
    }

    /// Starts a copy from the host to the card; `from` must stay as it is until [`wait`](Self::wait) or a read returned.
    ///
    /// # Errors
    /// Where the driver refuses.
    ///
    /// # Safety
    /// `to` has room for the bytes.
    pub unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), CudaError> {
        if from.is_empty() {
            return Ok(());
        }
        // SAFETY: the source is a slice; the destination is the caller's promise.
        let status = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), ptr::null_mut()) };
        check("cuMemcpyHtoDAsync", status)
    }

    /// Waits for what was launched and copies from the card.
    ///
    /// # Errors
    /// The status of a launch that failed, or of the copy.
    ///
    /// # Safety
    /// The bytes at `from` are mapped.
    pub unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), CudaError> {
        if to.is_empty() {
            return self.wait();
        }
        // SAFETY: the destination is a slice; the source is the caller's promise.
        check("cuMemcpyDtoH", unsafe { sys::cuMemcpyDtoH_v2(to.as_mut_ptr().cast(), from, to.len()) })
    }

    /// Loads machine code or PTX.
    ///
    /// # Errors
    /// Where the driver does not take it.
    pub fn module(&self, image: &[u8]) -> Result<Module, CudaError> {
        let mut module = ptr::null_mut();
        // PTX is text that ends in 0.
        let image = [image, &[0]].concat();
        // SAFETY: the image ends in 0 and outlives the call.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut module, image.as_ptr().cast()) })?;
        Ok(Module { module })
    }
}

/// Memory of the card, given back when dropped.
#[derive(Debug)]
pub struct Buffer {
    pub address: u64,
    pub bytes: u64,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `Gpu::buffer` and freed once. A context that has failed refuses, and its memory is gone.
        let _ = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

/// Pinned memory of the host.
#[derive(Debug)]
pub struct HostBuffer {
    start: *mut u8,
    bytes: usize,
}

impl HostBuffer {
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: allocated with this length; every byte was given some value by the driver or by `bytes_mut`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated in `Gpu::host_buffer` and freed once.
        let _ = unsafe { sys::cuMemFreeHost(self.start.cast()) };
    }
}

/// Loaded code. Stays loaded as long as the process.
#[derive(Debug, Clone, Copy)]
pub struct Module {
    module: CUmodule,
}

impl Module {
    /// A kernel by its name.
    ///
    /// # Errors
    /// Where the module has none of that name.
    pub fn function(&self, name: &str) -> Result<Function, CudaError> {
        let mut function = ptr::null_mut();
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: the name ends in 0 and both outlive the call.
        let status = unsafe { sys::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) };
        check("cuModuleGetFunction", status)?;
        Ok(Function { function })
    }
}

/// A kernel.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    function: CUfunction,
}

/// Blocks, threads of a block, and bytes of dynamic shared memory of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

impl Launch {
    /// A grid of two dimensions, blocks of one.
    pub fn flat(x: u32, y: u32, threads: u32) -> Launch {
        Launch { grid: [x, y, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }
}

impl Function {
    /// Allows launches with so much dynamic shared memory.
    ///
    /// # Errors
    /// Where the card has less.
    pub fn allow_shared(&self, bytes: u32) -> Result<(), CudaError> {
        let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is loaded.
        check("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.function, which, bytes as i32) })
    }

    /// Starts a launch. Every argument is its bytes, in the kernel's order.
    ///
    /// # Errors
    /// Where the launch is refused; what goes wrong while it runs shows when it is waited for.
    ///
    /// # Safety
    /// The arguments are those of the kernel, with their sizes; what it touches is mapped, or the process is there to be lost.
    pub unsafe fn launch(&self, launch: Launch, args: &[&[u8]]) -> Result<(), CudaError> {
        let mut pointers: Vec<*mut c_void> = args.iter().map(|a| a.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        // SAFETY: the driver copies the arguments before it returns; the rest is the caller's promise.
        let status = unsafe {
            sys::cuLaunchKernel(
                self.function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                launch.shared_bytes,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", status)
    }
}
