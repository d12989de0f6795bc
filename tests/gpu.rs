//! GPU targets on a machine that may have no GPU: what is refused, and in which words.

mod common;

use common::{findings, hunt, run};
use std::path::Path;

/// Whether this machine has NVIDIA's driver: then the sentences about its absence are not due.
fn has_driver() -> bool {
    // SAFETY: the driver's library has no initialisers that touch memory of this program.
    unsafe { libloading::Library::new("libcuda.so.1") }.is_ok()
}

fn kernels(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/targets/cuda").join(name).display().to_string()
}

#[test]
fn a_machine_without_a_driver_says_so_in_one_line() {
    if has_driver() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let planted = format!("kernel:{}", kernels("planted_wrap_b.toml"));
    for target in ["cublas", "cublaslt", "selftest,device=cuda", planted.as_str()] {
        let said = run(dir.path(), &format!("gemm --target {target}")).expect(3).stderr;
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 1, "{said}");
        assert!(lines[0].contains("no NVIDIA driver: libcuda.so.1 was not found"), "{said}");
    }
    let said = run(dir.path(), "doctor").expect(0).stdout;
    assert!(said.contains("devices     cpu; no NVIDIA driver"), "{said}");
}

#[test]
fn a_kernel_that_cannot_be_meant_is_a_usage_error() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(kernels("planted_none.toml")).unwrap();
    let broken = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let path = dir.path().join(name);
        std::fs::write(&path, text.replace(from, to)).unwrap();
        format!("gemm --target kernel:{}", path.display())
    };
    let cases = [
        ("gemm --target kernel:no/such.toml".to_owned(), "names no file"),
        (broken("a.toml", "\"gemm\"\nrequire", "\"allgather\"\nrequire"), "it runs allgather, not gemm"),
        (broken("b.toml", "\"i64 m\"", "\"int m\""), "argument 'int m'"),
        (broken("c.toml", "cdiv(m, 64)", "cdiv(m, 64"), "'cdiv(m, 64'"),
        (broken("d.toml", "entry =", "entri ="), "line "),
        (broken("e.toml", "n < 2^16", "q < 2^16"), "q < 2^16"),
        (format!("allgather --target kernel:{}", kernels("planted_none.toml")), "it runs gemm, not allgather"),
        (format!("gemm --lib /bin/sh --target kernel:{}", kernels("planted_none.toml")), "leave out --lib"),
    ];
    for (words, due) in cases {
        let said = run(dir.path(), &words).expect(2).stderr;
        assert!(said.contains(due) && said.trim_end().lines().count() == 1, "{words}: {said}");
    }
}

#[test]
fn a_third_opinion_on_the_host_is_declined_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let found = hunt(dir.path(), "gemm --seed 42 --sanitizer").expect(1);
    assert_eq!(findings(&dir.path().join("out")).len(), 1);
    let notes = found.events_of("note");
    assert!(notes.iter().any(|n| n["text"].as_str().unwrap().contains("looks at GPUs only")), "{notes:?}");
}
