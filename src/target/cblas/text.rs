//! The call of a case as a line of C.

use crate::problem::{Case, Problem, gemm};

/// `cblas_sgemm(CblasColMajor, CblasNoTrans, ...)`; a base pointer that is not the start of its matrix reads `A + 4`.
/// `None` where CBLAS has no such call.
pub fn call_text(problem: &Problem, case: &Case) -> Option<String> {
    let instance = std::sync::Arc::new(problem.clone()).instance(case.clone()).ok()?;
    let kind = match instance.word("dtype").as_str() {
        "f32" => 's',
        "f64" => 'd',
        _ => return None,
    };
    if instance.get("out") != 0 || instance.get("batch") != 1 {
        return None;
    }
    let trans = |name: &str| if instance.get(name) == 1 { "CblasTrans" } else { "CblasNoTrans" };
    let pointer = |operand: usize, name: &str| match instance.view(operand).map_or(0, |v| v.offsets[0]) {
        0 => name.to_owned(),
        offset => format!("{name} + {offset}"),
    };
    let number = |name: &str| instance.get(name);
    Some(format!(
        "cblas_{kind}gemm(CblasColMajor, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {})",
        trans("transA"),
        trans("transB"),
        number("m"),
        number("n"),
        number("k"),
        instance.word("alpha"),
        pointer(gemm::A, "A"),
        number("lda"),
        pointer(gemm::B, "B"),
        number("ldb"),
        instance.word("beta"),
        pointer(gemm::C, "C"),
        number("ldc"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Knobs, Placement, Value};

    fn text(words: &[(&str, &str)]) -> Option<String> {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = words.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
        let params = problem.complete(&named).unwrap();
        call_text(&problem, &Case { params, knobs: Knobs::new(), placement: Placement::END })
    }

    #[test]
    fn a_case_reads_as_the_call_it_makes() {
        let words =
            [("m", "2"), ("n", "3"), ("k", "4"), ("transB", "T"), ("dtype", "f64"), ("offB", "5"), ("beta", "-1")];
        let expected = "cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, 2, 3, 4, 1, A, 2, B + 5, 3, -1, C, 2)";
        assert_eq!(text(&words).as_deref(), Some(expected));
    }

    #[test]
    fn what_cblas_has_no_call_for_has_no_text() {
        for words in [[("dtype", "bf16"), ("m", "1")], [("batch", "2"), ("m", "1")], [("out", "D"), ("m", "1")]] {
            assert_eq!(text(&words), None);
        }
    }
}
