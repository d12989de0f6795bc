//! All-gather: every rank's rows end up on every rank, block after block.

use super::builder::Builder;
use super::contents::{Contents, hash};
use super::description::Problem;
use super::dtype::Dtype;
use super::expr::ParseError;
use super::instance::Instance;
use super::operand::Use;
use super::param::Role;

/// Operand indices, in declaration order.
pub const IN: usize = 0;
pub const OWN: usize = 1;
pub const OUT: usize = 2;

/// The description. Rank r contributes M rows of N columns; row `i` of rank `r` is row `r*M + i` of the output of every rank.
/// A plain count per rank is `M=1 N=count`. In place, the input of rank r is its own block of its output.
pub fn problem() -> Result<Problem, ParseError> {
    let mut b = Builder::new("allgather");
    b.integer("ranks", Role::Ranks, 1, 4096, "number of ranks; each has its own input and output")
        .integer("M", Role::Size, 1, 1 << 34, "rows that one rank contributes")
        .integer("N", Role::Size, 1, 1 << 34, "columns")
        .flag("inplace", "the input of a rank is its block of its output")
        .integer("strideIn", Role::Stride, 1, 1 << 34, "distance between two rows of the input, elements")
        .only_when("not inplace")?
        .integer("strideOut", Role::Stride, 1, 1 << 34, "distance between two rows of the output, elements")
        .choice("dtype", &["f32", "bf16", "f16", "f64"], "element type");
    b.constraint("strideIn >= if(inplace, 1, N)")?.constraint("strideOut >= N")?.work("ranks * ranks * M * N")?;
    b.operand("in", Use::Read, &[("M", "strideIn"), ("N", "1")])?
        .with(|b, o| {
            o.when = Some(b.condition("not inplace")?);
            o.ranks = Some(b.expr("ranks")?);
            Ok(())
        })?
        .operand("own", Use::Read, &[("M", "strideOut"), ("N", "1")])?
        .with(|b, o| {
            o.when = Some(b.condition("inplace")?);
            o.offset = Some(b.expr("rank * M * strideOut")?);
            o.ranks = Some(b.expr("ranks")?);
            o.alias = Some(OUT);
            Ok(())
        })?
        .operand("out", Use::Write, &[("ranks", "M * strideOut"), ("M", "strideOut"), ("N", "1")])?
        .with(|b, o| {
            o.ranks = Some(b.expr("ranks")?);
            Ok(())
        })?;
    Ok(b.finish())
}

struct AllGather {
    seed: u64,
    range: u64,
}

impl AllGather {
    fn value(&self, rank: i64, row: i64, column: i64) -> f64 {
        // Positive and never 0, so that untouched zero pages cannot pass for data.
        (hash(self.seed, IN, rank as u32, &[row, column]) % self.range + 1) as f64
    }
}

/// Values of one all-gather case.
pub fn contents(instance: &Instance, seed: u64) -> Box<dyn Contents> {
    let dtype = instance.view(OUT).and_then(|v| v.dtype).unwrap_or(Dtype::F32);
    Box::new(AllGather { seed, range: 1 << dtype.exact_bits().min(20) })
}

impl Contents for AllGather {
    fn input(&self, _operand: usize, copy: u32, index: &[i64]) -> f64 {
        self.value(i64::from(copy), index[0], index[1])
    }

    fn expected(&self, _operand: usize, _copy: u32, index: &[i64]) -> f64 {
        self.value(index[0], index[1], index[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Case, Placement};
    use std::sync::Arc;

    fn instance(text: &[(&str, &str)]) -> Instance {
        let problem = Arc::new(problem().unwrap());
        let named = text.iter().map(|(n, v)| ((*n).to_owned(), crate::problem::Value::from_word(v))).collect();
        let params = problem.complete(&named).unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
    }

    #[test]
    fn the_last_element_of_the_512_mib_case_is_two_to_the_31_less_one() {
        let i = instance(&[("ranks", "8"), ("M", "32768"), ("N", "8192"), ("dtype", "bf16")]);
        assert_eq!(i.view(OUT).unwrap().highest(0), (1 << 31) - 1);
        assert_eq!(i.view(IN).unwrap().copies(), 8);
    }

    #[test]
    fn in_place_inputs_lie_in_their_block_of_the_output() {
        let i = instance(&[("ranks", "4"), ("M", "3"), ("N", "5"), ("strideOut", "7"), ("inplace", "true")]);
        assert!(i.view(IN).is_none());
        let own = i.view(OWN).unwrap();
        assert_eq!(own.offsets, vec![0, 21, 42, 63]);
        assert_eq!(own.offset_of(2, &[1, 2]), i.view(OUT).unwrap().offset_of(0, &[2, 1, 2]));
    }
}
