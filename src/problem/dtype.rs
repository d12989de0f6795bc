//! Element types: their size, and how small integers are written in them.

use super::complex::{pack, unpack};
use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// An element type, named as in the manifest format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    I8,
    U8,
    I16,
    U16,
    F16,
    Bf16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
    F8e4m3,
    F8e5m2,
    /// Two `f32`: real part, imaginary part. Values are packed, see [`complex`](super::complex).
    C64,
    /// Two `f64`.
    C128,
}

const ALL: [(Dtype, &str, u64, u32); 16] = [
    (Dtype::I8, "i8", 1, 7),
    (Dtype::U8, "u8", 1, 8),
    (Dtype::I16, "i16", 2, 15),
    (Dtype::U16, "u16", 2, 16),
    (Dtype::F16, "f16", 2, 11),
    (Dtype::Bf16, "bf16", 2, 8),
    (Dtype::I32, "i32", 4, 31),
    (Dtype::U32, "u32", 4, 32),
    (Dtype::F32, "f32", 4, 24),
    (Dtype::I64, "i64", 8, 63),
    (Dtype::U64, "u64", 8, 64),
    (Dtype::F64, "f64", 8, 53),
    (Dtype::F8e4m3, "f8e4m3", 1, 4),
    (Dtype::F8e5m2, "f8e5m2", 1, 3),
    (Dtype::C64, "c64", 8, 24),
    // 53 bits a part, of which packed values have 24.
    (Dtype::C128, "c128", 16, 24),
];

/// Bytes of the largest element.
pub const LARGEST_ELEMENT: usize = 16;

impl Dtype {
    fn row(self) -> &'static (Dtype, &'static str, u64, u32) {
        &ALL[self as usize]
    }

    pub fn all() -> impl Iterator<Item = Dtype> {
        ALL.iter().map(|row| row.0)
    }

    pub fn from_name(name: &str) -> Option<Dtype> {
        ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        self.row().2
    }

    pub fn is_complex(self) -> bool {
        matches!(self, Dtype::C64 | Dtype::C128)
    }

    /// A floating-point type, or a pair of them.
    pub fn is_float(self) -> bool {
        use Dtype::*;
        matches!(self, F16 | Bf16 | F32 | F64 | F8e4m3 | F8e5m2 | C64 | C128)
    }

    /// The type of the parts of a complex type; any other type itself.
    pub fn real(self) -> Dtype {
        match self {
            Dtype::C64 => Dtype::F32,
            Dtype::C128 => Dtype::F64,
            other => other,
        }
    }

    /// Every integer up to 2 to this power is exact in the type (significand bits, the hidden one included).
    pub fn exact_bits(self) -> u32 {
        self.row().3
    }

    /// Writes `value` into the first [`bytes`](Self::bytes) of `out`.
    pub fn encode(self, value: f64, out: &mut [u8]) {
        match self {
            Dtype::F64 => out[..8].copy_from_slice(&value.to_ne_bytes()),
            Dtype::F32 => out[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
            Dtype::F16 => out[..2].copy_from_slice(&f16::from_f64(value).to_ne_bytes()),
            Dtype::Bf16 => out[..2].copy_from_slice(&bf16::from_f64(value).to_ne_bytes()),
            Dtype::I8 => out[..1].copy_from_slice(&(value as i8).to_ne_bytes()),
            Dtype::U8 => out[..1].copy_from_slice(&(value as u8).to_ne_bytes()),
            Dtype::I16 => out[..2].copy_from_slice(&(value as i16).to_ne_bytes()),
            Dtype::U16 => out[..2].copy_from_slice(&(value as u16).to_ne_bytes()),
            Dtype::I32 => out[..4].copy_from_slice(&(value as i32).to_ne_bytes()),
            Dtype::U32 => out[..4].copy_from_slice(&(value as u32).to_ne_bytes()),
            Dtype::I64 => out[..8].copy_from_slice(&(value as i64).to_ne_bytes()),
            Dtype::U64 => out[..8].copy_from_slice(&(value as u64).to_ne_bytes()),
            Dtype::C64 | Dtype::C128 => {
                let (part, (re, im)) = (self.real(), unpack(value));
                part.encode(re, out);
                part.encode(im, &mut out[part.bytes() as usize..]);
            }
            Dtype::F8e4m3 => out[0] = F8E4M3::from_f64(value).to_bits(),
            Dtype::F8e5m2 => out[0] = F8E5M2::from_f64(value).to_bits(),
        }
    }

    /// Reads one element; NaN where a complex number cannot be packed.
    pub fn decode(self, bytes: &[u8]) -> f64 {
        fn take<const N: usize>(bytes: &[u8]) -> [u8; N] {
            let mut out = [0; N];
            out.copy_from_slice(&bytes[..N]);
            out
        }
        match self {
            Dtype::F64 => f64::from_ne_bytes(take(bytes)),
            Dtype::F32 => f64::from(f32::from_ne_bytes(take(bytes))),
            Dtype::F16 => f16::from_ne_bytes(take(bytes)).to_f64(),
            Dtype::Bf16 => bf16::from_ne_bytes(take(bytes)).to_f64(),
            Dtype::I8 => f64::from(i8::from_ne_bytes(take(bytes))),
            Dtype::U8 => f64::from(bytes[0]),
            Dtype::I16 => f64::from(i16::from_ne_bytes(take(bytes))),
            Dtype::U16 => f64::from(u16::from_ne_bytes(take(bytes))),
            Dtype::I32 => f64::from(i32::from_ne_bytes(take(bytes))),
            Dtype::U32 => f64::from(u32::from_ne_bytes(take(bytes))),
            Dtype::I64 => i64::from_ne_bytes(take(bytes)) as f64,
            Dtype::U64 => u64::from_ne_bytes(take(bytes)) as f64,
            Dtype::C64 | Dtype::C128 => {
                let part = self.real();
                let (re, im) = (part.decode(bytes), part.decode(&bytes[part.bytes() as usize..]));
                let small = |x: f64| x.fract() == 0.0 && x.abs() <= f64::from(1 << 24);
                if small(re) && small(im) { pack(re, im) } else { f64::NAN }
            }
            Dtype::F8e4m3 => F8E4M3::from_bits(bytes[0]).to_f64(),
            Dtype::F8e5m2 => F8E5M2::from_bits(bytes[0]).to_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in ALL.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(Dtype::from_name(row.1), Some(row.0));
        }
    }

    #[test]
    fn small_integers_survive_every_type() {
        for row in ALL {
            for v in [0.0, 1.0, 2.0, 7.0, 100.0].into_iter().filter(|v| *v <= f64::from(row.3).exp2()) {
                let mut b = [0u8; LARGEST_ELEMENT];
                row.0.encode(v, &mut b);
                assert_eq!(row.0.decode(&b), v, "{}", row.1);
            }
        }
    }

    /// The value of 8 bits by the definition of the formats (OCP 8-bit Floating Point Specification, revision 1.0).
    fn eight_bits(bits: u8, exponent_bits: u32, bias: i32) -> f64 {
        let fraction_bits = 7 - exponent_bits;
        let exponent = i32::from((bits & 0x7f) >> fraction_bits);
        let fraction = f64::from(bits & ((1 << fraction_bits) - 1)) / f64::from(1 << fraction_bits);
        let size = if exponent == 0 {
            fraction * f64::from(1 - bias).exp2()
        } else {
            (1.0 + fraction) * f64::from(exponent - bias).exp2()
        };
        if bits & 0x80 == 0 { size } else { -size }
    }

    #[test]
    fn all_floats_of_8_bits_are_read_and_written_as_they_are_defined() {
        for bits in 0..=u8::MAX {
            for (dtype, exponent_bits, bias) in [(Dtype::F8e4m3, 4, 7), (Dtype::F8e5m2, 5, 15)] {
                let read = dtype.decode(&[bits]);
                let size = bits & 0x7f;
                match dtype {
                    Dtype::F8e4m3 if size == 0x7f => assert!(read.is_nan(), "{bits:#x}"),
                    Dtype::F8e5m2 if size > 0x7c => assert!(read.is_nan(), "{bits:#x}"),
                    Dtype::F8e5m2 if size == 0x7c => assert!(read.is_infinite(), "{bits:#x}"),
                    _ => {
                        assert_eq!(read, eight_bits(bits, exponent_bits, bias), "{} {bits:#x}", dtype.name());
                        let mut written = [0];
                        dtype.encode(read, &mut written);
                        assert_eq!(written, [bits], "{} {read}", dtype.name());
                    }
                }
            }
        }
    }
}
