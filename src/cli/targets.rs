//! `targets`: what this version can test, and what of it is on this machine.

use crate::device::cuda;
use crate::problem::BUILTINS;
use crate::report::stdout::say;
use crate::target::{cblas, sim};

pub fn run() {
    say!("sim: built-in models, on the CPU; they test no library");
    for b in BUILTINS {
        let default = sim::default_spec(b.name).map(|s| s.to_string());
        for m in sim::models(b.name) {
            let spec = format!("sim:{}", m.name);
            let mark = if default.as_ref().is_some_and(|d| d.starts_with(&format!("{spec},")) || *d == spec) {
                " (default)"
            } else {
                ""
            };
            say!("  {:<10} {spec:<24} {}{mark}", b.name, m.defect);
        }
    }
    libraries();
    say!(
        "cublas, cublaslt: NVIDIA's libraries, on a GPU: shrinkfault gemm --target cublaslt [--lib PATH] (docs/cuda.md)"
    );
    say!("kernel: a CUDA kernel of your own, on a GPU: shrinkfault gemm --target kernel:FILE.toml (docs/cuda.md)");
    say!("  {}", gpus());
    say!(
        "manifest: any program that speaks JSON lines: shrinkfault fuzz MANIFEST (docs/manifest.md, scripts/targets/)"
    );
    say!("hip, nccl, mpi: not part of this version");
}

/// How many GPUs can be used here, or why none can.
pub fn gpus() -> String {
    match cuda::count() {
        Ok(1) => "1 NVIDIA GPU".to_owned(),
        Ok(count) => format!("{count} NVIDIA GPUs"),
        Err(why) => why,
    }
}

/// The BLAS libraries in the usual folders.
pub fn libraries() {
    say!("cblas: any BLAS with sgemm and dgemm: shrinkfault gemm --lib PATH, shrinkfault blas ROUTINE --lib PATH");
    let found = cblas::find();
    if found.is_empty() {
        say!("  none found in the usual folders");
    }
    for path in found {
        match cblas::describe(&path) {
            Ok(d) => {
                say!("  {} ({}, {}-bit integers, {})", d.path.display(), d.name, d.int_width, d.interface);
                say!("    {}", about(&d));
            }
            Err(e) => say!("  {}: {e}", path.display()),
        }
    }
}

/// What a library says of itself, and which problems it can be called for.
fn about(d: &cblas::Description) -> String {
    let missing: Vec<&str> = cblas::Routine::names().filter(|name| !d.routines.contains(name)).collect();
    let routines = match &missing[..] {
        [] => "all routines".to_owned(),
        _ if d.routines.len() <= missing.len() => d.routines.join(" "),
        _ => format!("all routines but {}", missing.join(", ")),
    };
    let more = if d.extras.is_empty() { String::new() } else { format!("; gemm also {}", d.extras.join(", ")) };
    let core = d.core.as_ref().map_or_else(String::new, |core| format!("; core type {core}"));
    format!("{routines}{more}{core}; {}", d.version)
}
