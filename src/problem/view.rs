//! One operand of one case, in numbers.

use super::dtype::Dtype;
use super::operand::{Gaps, Use};

/// `extent` elements, `stride` elements apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    pub extent: i64,
    pub stride: i64,
}

/// The elements of one operand of one case, relative to the base pointer, in elements.
///
/// Every offset of the view, times the element size, fits an `i64`: [`Instance`](super::Instance) checks it once.
#[derive(Debug, Clone)]
pub struct View {
    /// Index of the operand in the problem.
    pub operand: usize,
    pub dtype: Option<Dtype>,
    /// Bytes of one element.
    pub element_bytes: i64,
    pub dims: Vec<Step>,
    /// Offset of the first element, one entry per copy.
    pub offsets: Vec<i64>,
    pub access: Use,
    /// Whether the elements hold values before the run.
    pub defined: bool,
    pub gaps: Gaps,
    /// The operand in whose memory this one lies.
    pub alias: Option<usize>,
}

impl View {
    pub fn copies(&self) -> u32 {
        self.offsets.len() as u32
    }

    /// Number of elements of one copy; 0 where any extent is 0.
    pub fn elements(&self) -> i128 {
        self.dims.iter().map(|d| i128::from(d.extent)).product()
    }

    pub fn is_empty(&self) -> bool {
        self.dims.iter().any(|d| d.extent == 0)
    }

    /// Lowest element offset from the base pointer.
    pub fn lowest(&self, copy: u32) -> i64 {
        self.offsets[copy as usize] + self.dims.iter().map(|d| (d.extent - 1).max(0) * d.stride.min(0)).sum::<i64>()
    }

    /// Highest element offset from the base pointer.
    pub fn highest(&self, copy: u32) -> i64 {
        self.offsets[copy as usize] + self.dims.iter().map(|d| (d.extent - 1).max(0) * d.stride.max(0)).sum::<i64>()
    }

    /// Elements from the lowest to the highest, both included.
    pub fn span(&self) -> i64 {
        self.highest(0) - self.lowest(0) + 1
    }

    /// Offset of the element at `index`, in elements from the base pointer.
    pub fn offset_of(&self, copy: u32, index: &[i64]) -> i64 {
        self.offsets[copy as usize] + self.dims.iter().zip(index).map(|(d, i)| d.stride * i).sum::<i64>()
    }

    /// Whether the element offset belongs to the view: an exact search over the dimensions, largest stride first.
    pub fn contains(&self, copy: u32, offset: i64) -> bool {
        let mut dims: Vec<Step> = self.dims.iter().copied().filter(|d| d.extent > 1).collect();
        dims.sort_by_key(|d| std::cmp::Reverse(d.stride.abs()));
        !self.is_empty() && member(&dims, i128::from(offset) - i128::from(self.offsets[copy as usize]))
    }
}

fn member(dims: &[Step], rest: i128) -> bool {
    let Some((d, inner)) = dims.split_first() else {
        return rest == 0;
    };
    let reach = |pick: fn(i64) -> i64| -> i128 {
        inner.iter().map(|s| i128::from(s.extent - 1) * i128::from(pick(s.stride))).sum()
    };
    let (low, high) = (reach(|s| s.min(0)), reach(|s| s.max(0)));
    let stride = i128::from(d.stride);
    if stride == 0 {
        return member(inner, rest);
    }
    // rest - i * stride must lie in low..=high.
    let (a, b) = ((rest - high, rest - low), stride);
    let (first, last) =
        if b > 0 { (div_ceil(a.0, b), a.1.div_euclid(b)) } else { (div_ceil(-a.1, -b), (-a.0).div_euclid(-b)) };
    let first = first.max(0);
    let last = last.min(i128::from(d.extent) - 1);
    let mut i = first;
    while i <= last {
        if member(inner, rest - i * stride) {
            return true;
        }
        i += 1;
    }
    false
}

fn div_ceil(a: i128, b: i128) -> i128 {
    -((-a).div_euclid(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn view(dims: &[(i64, i64)], offset: i64) -> View {
        View {
            operand: 0,
            dtype: Some(Dtype::F32),
            element_bytes: 4,
            dims: dims.iter().map(|&(extent, stride)| Step { extent, stride }).collect(),
            offsets: vec![offset],
            access: Use::Read,
            defined: true,
            gaps: Gaps::None,
            alias: None,
        }
    }

    proptest! {
        #[test]
        fn membership_agrees_with_a_list_of_all_elements(
            dims in prop::collection::vec((1i64..5, -12i64..12), 1..4), offset in -20i64..20, probe in -150i64..150
        ) {
            let v = view(&dims, offset);
            let mut all = vec![offset];
            for (extent, stride) in &dims {
                all = all.iter().flat_map(|a| (0..*extent).map(move |i| a + i * stride)).collect();
            }
            prop_assert_eq!(v.contains(0, probe), all.contains(&probe));
            prop_assert_eq!(v.lowest(0), *all.iter().min().unwrap());
            prop_assert_eq!(v.highest(0), *all.iter().max().unwrap());
        }
    }
}
