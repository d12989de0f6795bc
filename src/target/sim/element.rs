//! Element types and the only two accesses to memory that a kernel has.

use half::{bf16, f16};

/// A type that a kernel computes on, in `f64`.
pub trait Element: Copy {
    fn wide(self) -> f64;
    fn narrow(value: f64) -> Self;
}

impl Element for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Element for f64 {
    fn wide(self) -> f64 {
        self
    }

    fn narrow(value: f64) -> f64 {
        value
    }
}

/// The value as an `f32`, where that is the same number: from there the way to 16 bits is quicker, and rounds once.
#[inline(always)]
fn short(value: f64) -> Option<f32> {
    Some(value as f32).filter(|v| f64::from(*v) == value)
}

impl Element for f16 {
    fn wide(self) -> f64 {
        f64::from(self.to_f32())
    }

    fn narrow(value: f64) -> f16 {
        short(value).map_or_else(|| f16::from_f64(value), f16::from_f32)
    }
}

impl Element for bf16 {
    fn wide(self) -> f64 {
        f64::from(self.to_f32())
    }

    fn narrow(value: f64) -> bf16 {
        short(value).map_or_else(|| bf16::from_f64(value), bf16::from_f32)
    }
}

/// Loads the element `offset` elements from `base`. Volatile: a load whose value nobody uses is carried out too.
///
/// # Safety
/// `base` is aligned for `T`, and the address is readable or the process may be lost to the fault.
#[inline(always)]
pub unsafe fn load<T: Copy>(base: *mut u8, offset: i64) -> T {
    // SAFETY: the caller's promise; the address itself is formed without an in-bounds claim.
    unsafe { base.cast::<T>().wrapping_offset(offset as isize).read_volatile() }
}

/// Stores the element `offset` elements from `base`.
///
/// # Safety
/// `base` is aligned for `T`, and the address is writable memory that holds no Rust object, or the process may be lost
/// to the fault.
#[inline(always)]
pub unsafe fn store<T: Copy>(base: *mut u8, offset: i64, value: T) {
    // SAFETY: as for `load`.
    unsafe { base.cast::<T>().wrapping_offset(offset as isize).write_volatile(value) }
}
