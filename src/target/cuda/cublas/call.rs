//! One call of cuBLAS.

use super::abi::{Calls, GEMM_DEFAULT, Handle};
use super::plan::{Call, Plan};
use crate::device::cuda::{Buffer, CudaError, Gpu};
use crate::target::cuda::blas::{Failure, Gemm, Side, done};
use std::ptr;

/// Arrays of pointers, on the card.
#[derive(Debug)]
pub struct Arrays {
    buffer: Buffer,
    /// Address of the array of A, of B and of C.
    at: [u64; 3],
}

impl Arrays {
    /// # Errors
    /// Where the card has no room.
    pub fn new(gpu: &Gpu) -> Result<Arrays, CudaError> {
        Ok(Arrays { buffer: gpu.buffer(1 << 16)?, at: [0; 3] })
    }

    /// Puts the addresses of every matrix of a product there.
    fn set(&mut self, gpu: &Gpu, gemm: &Gemm) -> Result<(), CudaError> {
        let addresses = |side: &Side| (0..gemm.batch).map(|product| side.at(product)).collect::<Vec<_>>();
        let all = [&gemm.a, &gemm.b, &gemm.c].map(addresses).concat();
        let bytes: Vec<u8> = all.iter().flat_map(|address| address.to_le_bytes()).collect();
        if self.buffer.bytes < bytes.len() as u64 {
            self.buffer = gpu.buffer((bytes.len() as u64).next_power_of_two())?;
        }
        // SAFETY: the buffer has room. The copy is waited for, since the bytes are gone afterwards.
        unsafe { gpu.upload(self.buffer.address, &bytes)? };
        gpu.wait()?;
        self.at = [0, 1, 2].map(|which| self.buffer.address + which * 8 * gemm.batch as u64);
        Ok(())
    }
}

fn pointer<T>(address: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Starts a product on the null stream. `I` is as wide as the plan says.
///
/// # Errors
/// As its status says.
///
/// # Safety
/// Every element of the operands is mapped, or the process is there to be lost.
pub unsafe fn run<I: Copy + TryFrom<i64>>(
    calls: &Calls<I>,
    handle: Handle,
    gpu: &Gpu,
    arrays: &mut Arrays,
    plan: Plan,
    gemm: &Gemm,
) -> Result<(), Failure> {
    let int = |x: i64| I::try_from(x).map_err(|_| Failure::Refused(format!("{x} does not fit an int")));
    let Gemm { of, operations: [ta, tb], a, b, c, .. } = gemm;
    let (m, n, k, batch) = (int(gemm.m)?, int(gemm.n)?, int(gemm.k)?, int(gemm.batch)?);
    let (lda, ldb, ldc) = (int(a.leading)?, int(b.leading)?, int(c.leading)?);
    let (type_a, type_b, type_c, compute) = (of.a as u32, of.b as u32, of.c as u32, of.compute as u32);
    let (alpha, beta) = (gemm.alpha.pointer(), gemm.beta.pointer());
    let (ta, tb) = (*ta, *tb);
    if plan.call == Call::Pointers {
        arrays.set(gpu, gemm).map_err(|e| {
            let text = e.to_string();
            if e.is_out_of_memory() { Failure::Refused(text) } else { Failure::Failed(text) }
        })?;
    }
    // SAFETY: the factors outlive the call, the arrays are on the card; the rest is the caller's promise.
    let status = unsafe {
        match plan.call {
            Call::Plain => {
                let (a, b, c) = (pointer(a.address), pointer(b.address), pointer(c.address));
                let f = calls.plain;
                f(
                    handle,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    alpha,
                    a,
                    type_a,
                    lda,
                    b,
                    type_b,
                    ldb,
                    beta,
                    c,
                    type_c,
                    ldc,
                    compute,
                    GEMM_DEFAULT,
                )
            }
            Call::Strided => {
                let strides = [a.stride, b.stride, c.stride];
                let (a, b, c) = (pointer(a.address), pointer(b.address), pointer(c.address));
                let f = calls.strided;
                f(
                    handle,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    alpha,
                    a,
                    type_a,
                    lda,
                    strides[0],
                    b,
                    type_b,
                    ldb,
                    strides[1],
                    beta,
                    c,
                    type_c,
                    ldc,
                    strides[2],
                    batch,
                    compute,
                    GEMM_DEFAULT,
                )
            }
            Call::Pointers => {
                let [a, b, c] = arrays.at;
                let f = calls.pointers;
                f(
                    handle,
                    ta,
                    tb,
                    m,
                    n,
                    k,
                    alpha,
                    pointer(a),
                    type_a,
                    lda,
                    pointer(b),
                    type_b,
                    ldb,
                    beta,
                    pointer(c),
                    type_c,
                    ldc,
                    batch,
                    compute,
                    GEMM_DEFAULT,
                )
            }
        }
    };
    done(plan.function(), status)
}
