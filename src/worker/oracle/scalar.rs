//! Rows of values in memory, by element type.

use super::region::Row;
use crate::problem::Dtype;
use crate::problem::complex::unpack;
use crate::problem::dtype::LARGEST_ELEMENT;
use half::{bf16, f16};
use multiversion::multiversion;
use std::ptr;

/// A type with a row loop of its own; the others go element by element.
trait Scalar: Copy {
    fn of(value: f64) -> Self;
    /// As numbers: the two zeros are equal.
    fn equal(self, other: Self) -> bool;
    /// Bit by bit.
    fn same(self, other: Self) -> bool;
}

impl Scalar for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn equal(self, other: f64) -> bool {
        self == other
    }

    fn same(self, other: f64) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Scalar for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn equal(self, other: f32) -> bool {
        self == other
    }

    fn same(self, other: f32) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Scalar for f16 {
    fn of(value: f64) -> f16 {
        // Small integers pass through f32 unchanged, and from there the conversion is quick.
        let short = value as f32;
        if f64::from(short) == value { f16::from_f32(short) } else { f16::from_f64(value) }
    }

    fn equal(self, other: f16) -> bool {
        self == other
    }

    fn same(self, other: f16) -> bool {
        self.to_bits() == other.to_bits()
    }
}

impl Scalar for bf16 {
    fn of(value: f64) -> bf16 {
        // Small integers pass through f32 unchanged, and from there the conversion is quick.
        let short = value as f32;
        if f64::from(short) == value { bf16::from_f32(short) } else { bf16::from_f64(value) }
    }

    fn equal(self, other: bf16) -> bool {
        self == other
    }

    fn same(self, other: bf16) -> bool {
        self.to_bits() == other.to_bits()
    }
}

/// A complex element: real part, imaginary part.
#[derive(Clone, Copy)]
#[repr(C)]
struct Pair<T>(T, T);

impl<T: Scalar> Scalar for Pair<T> {
    fn of(value: f64) -> Pair<T> {
        let (re, im) = unpack(value);
        Pair(T::of(re), T::of(im))
    }

    fn equal(self, other: Pair<T>) -> bool {
        self.0.equal(other.0) && self.1.equal(other.1)
    }

    fn same(self, other: Pair<T>) -> bool {
        self.0.same(other.0) && self.1.same(other.1)
    }
}

fn at(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(address as usize)
}

/// Writes `values` to the elements of a row.
///
/// # Safety
/// The elements are mapped for writing, and no Rust reference points to them.
#[multiversion(targets("x86_64+avx2"))]
pub unsafe fn write(dtype: Dtype, values: &[f64], row: Row<'_>) {
    // SAFETY: passed on; every type has the size that the row was made for.
    unsafe {
        match dtype {
            Dtype::F32 => write_as::<f32>(values, row),
            Dtype::F64 => write_as::<f64>(values, row),
            Dtype::F16 => write_as::<f16>(values, row),
            Dtype::Bf16 => write_as::<bf16>(values, row),
            Dtype::C64 => write_as::<Pair<f32>>(values, row),
            Dtype::C128 => write_as::<Pair<f64>>(values, row),
            other => {
                let mut bytes = [0; LARGEST_ELEMENT];
                for (i, value) in values.iter().enumerate() {
                    other.encode(*value, &mut bytes);
                    ptr::copy_nonoverlapping(bytes.as_ptr(), at(row.at(i)), other.bytes() as usize);
                }
            }
        }
    }
}

/// Whether every element of a row equals its value, as numbers.
///
/// # Safety
/// The elements are mapped for reading, and no other thread writes to them.
#[multiversion(targets("x86_64+avx2"))]
pub unsafe fn all_equal(dtype: Dtype, values: &[f64], row: Row<'_>) -> bool {
    // SAFETY: passed on; every type has the size that the row was made for.
    unsafe {
        match dtype {
            Dtype::F32 => all(values, row, f32::equal),
            Dtype::F64 => all(values, row, f64::equal),
            Dtype::F16 => all(values, row, f16::equal),
            Dtype::Bf16 => all(values, row, bf16::equal),
            Dtype::C64 => all(values, row, Pair::<f32>::equal),
            Dtype::C128 => all(values, row, Pair::<f64>::equal),
            other => elements(values, row, other).all(|(value, bytes)| other.decode(&bytes) == value),
        }
    }
}

/// Whether every element of a row holds the very bytes that [`write`] put there.
///
/// # Safety
/// As for [`all_equal`].
#[multiversion(targets("x86_64+avx2"))]
pub unsafe fn all_same(dtype: Dtype, values: &[f64], row: Row<'_>) -> bool {
    // SAFETY: passed on; every type has the size that the row was made for.
    unsafe {
        match dtype {
            Dtype::F32 => all(values, row, f32::same),
            Dtype::F64 => all(values, row, f64::same),
            Dtype::F16 => all(values, row, f16::same),
            Dtype::Bf16 => all(values, row, bf16::same),
            Dtype::C64 => all(values, row, Pair::<f32>::same),
            Dtype::C128 => all(values, row, Pair::<f64>::same),
            other => elements(values, row, other).all(|(value, bytes)| {
                let mut written = [0; LARGEST_ELEMENT];
                other.encode(value, &mut written);
                written == bytes
            }),
        }
    }
}

/// Values of a row and the bytes that are there.
unsafe fn elements(values: &[f64], row: Row<'_>, dtype: Dtype) -> impl Iterator<Item = (f64, [u8; LARGEST_ELEMENT])> {
    // SAFETY: the caller promises that the row is mapped.
    let bytes = move |i| unsafe { read(row.at(i), dtype.bytes() as usize) };
    values.iter().enumerate().map(move |(i, value)| (*value, bytes(i)))
}

/// The first `count` (at most [`LARGEST_ELEMENT`]) bytes at an address, the rest 0.
///
/// # Safety
/// The bytes are mapped for reading, and no other thread writes to them.
pub unsafe fn read(address: u64, count: usize) -> [u8; LARGEST_ELEMENT] {
    let mut bytes = [0; LARGEST_ELEMENT];
    // SAFETY: passed on.
    unsafe { ptr::copy_nonoverlapping(at(address), bytes.as_mut_ptr(), count) };
    bytes
}

#[inline(always)] // with the instructions of its caller, and so below
unsafe fn write_as<T: Scalar>(values: &[f64], row: Row<'_>) {
    let first = at(row.address).cast::<T>();
    if row.stride == size_of::<T>() as i64 {
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the caller's row holds as many elements as there are values, one beside the other.
            unsafe { first.add(i).write_unaligned(T::of(*value)) };
        }
    } else {
        for (i, value) in values.iter().enumerate() {
            // SAFETY: as above, `stride` bytes apart.
            unsafe { first.wrapping_byte_offset(row.stride as isize * i as isize).write_unaligned(T::of(*value)) };
        }
    }
}

#[inline(always)]
unsafe fn all<T: Scalar>(values: &[f64], row: Row<'_>, agree: impl Fn(T, T) -> bool) -> bool {
    let first = at(row.address).cast::<T>();
    if row.stride == size_of::<T>() as i64 {
        // Without an early end, so that the loop is vectorised.
        let mut agreed = true;
        for (i, value) in values.iter().enumerate() {
            // SAFETY: the caller's row holds as many elements as there are values, one beside the other.
            agreed &= agree(unsafe { first.add(i).read_unaligned() }, T::of(*value));
        }
        agreed
    } else {
        values.iter().enumerate().all(|(i, value)| {
            let element = first.wrapping_byte_offset(row.stride as isize * i as isize);
            // SAFETY: as above, `stride` bytes apart.
            agree(unsafe { element.read_unaligned() }, T::of(*value))
        })
    }
}
