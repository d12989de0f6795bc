//! Values of a complex GEMM.

use super::{A, B, C, D};
use crate::problem::blas::{Matrix, Source, Tables};
use crate::problem::{Contents, Instance};

/// Values of one case. As in a real GEMM, elements of A and B are a function of their offset from the first one: with a small
/// batch stride one element belongs to several products.
pub(super) fn contents(i: &Instance, seed: u64) -> Box<dyn Contents> {
    let s = Source::new(i, seed);
    let (m, n, k) = (i.get("m"), i.get("n"), i.get("k"));
    let out = if i.word("out") == "D" { D } else { C };
    let summed = s.summed(k);
    let offset = |operand: usize, index: [i64; 3]| {
        i.view(operand).map_or(0, |v| v.dims.iter().zip(index).map(|(d, at)| d.stride * at).sum())
    };
    // Columns of op(A) lie so far apart; the same place along k has the same remainder in every product and row.
    let along = i.view(A).map_or(1, |v| v.dims[1].stride).max(1);
    let mut tables = [A, B, C].map(|_| vec![]);
    let mut after = vec![];
    for z in 0..i.get("batch") {
        let stored_a = Matrix::new(m, k, true, |r, l| {
            let at = offset(A, [r, l, z]);
            if summed(at / along) { s.entry(A, &[at]) } else { (0.0, 0.0) }
        });
        let stored_b = Matrix::new(k, n, true, |l, c| s.entry(B, &[offset(B, [l, c, z])]));
        let old = Matrix::new(m, n, true, |r, c| s.entry(C, &[r, c, z]));
        // The tables are by logical index, so a transposition is done; conjugating is not.
        let (a, b) = (stored_a.conjugate_if(i, "transA"), stored_b.conjugate_if(i, "transB"));
        let result = a.times(&b).combined(s.factor("alpha"), &old, s.factor("beta"));
        tables.iter_mut().zip([&stored_a, &stored_b, &old]).for_each(|(t, m)| t.extend(m.packed()));
        after.extend(result.packed());
    }
    let [a, b, c] = tables;
    let tables = Tables::new(i).set(i, A, a, vec![]).set(i, B, b, vec![]);
    Box::new(match out {
        D => tables.set(i, C, c, vec![]).set(i, D, vec![], after),
        _ => tables.set(i, C, c, after),
    })
}
