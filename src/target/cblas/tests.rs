use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::library::find_in;
use super::width::{self, Observed};
use super::*;
use crate::problem::{Builtin, Case, Domain, Instance, Knobs, Placement, Problem, Role, Value};
use crate::target::sim::testing::{NO_CAPS, wrong_on};
use crate::target::{Footprint, Target, TargetSpec};

const DEBIAN: &str = "/usr/lib/x86_64-linux-gnu";

/// Libraries of Debian packages, and the interface that each offers first.
const LIBRARIES: [(&str, Interface); 9] = [
    ("libcblas.so.3", Interface::Cblas),
    ("libf77blas.so.3", Interface::Fortran),
    ("atlas/libblas.so.3", Interface::Cblas),
    ("libgslcblas.so.0", Interface::Cblas),
    ("blas/libblas.so.3", Interface::Cblas),
    ("openblas-pthread/libblas.so.3", Interface::Cblas),
    ("openblas-pthread/libopenblas.so.0", Interface::Cblas),
    ("blis-pthread/libblas.so.3", Interface::Cblas),
    ("blis-pthread/libblis.so.4", Interface::Cblas),
];

/// The listed libraries that exist, those that `find` adds, and those in `SHRINKFAULT_TEST_BLAS`, separated by colons.
fn installed() -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = LIBRARIES.iter().map(|(name, _)| Path::new(DEBIAN).join(name)).collect();
    paths.retain(|path| {
        if !path.exists() {
            println!("skipped: {} is missing", path.display());
        }
        path.exists()
    });
    paths.extend(find());
    paths.extend(std::env::var_os("SHRINKFAULT_TEST_BLAS").iter().flat_map(std::env::split_paths));
    let mut real: Vec<PathBuf> = paths.iter().map(|path| path.canonicalize().unwrap()).collect();
    real.sort();
    real.dedup();
    real
}

trait Element: Copy + PartialEq + std::fmt::Debug {
    const REAL: Real;
    fn of(value: i64) -> Self;
}
impl Element for f32 {
    const REAL: Real = Real::F32;
    fn of(value: i64) -> f32 {
        value as f32
    }
}
impl Element for f64 {
    const REAL: Real = Real::F64;
    fn of(value: i64) -> f64 {
        value as f64
    }
}

/// xorshift64, so that a failing case can be repeated.
struct Random(u64);
impl Random {
    fn below(&mut self, bound: u64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound) as i64
    }
    fn fill(&mut self, length: i64) -> Vec<i64> {
        (0..length).map(|_| self.below(9) - 4).collect()
    }
}

/// One random product, compared with integers: every element of C, and the padding, must be as computed.
fn compare<T: Element>(library: &Library, random: &mut Random, trans: (bool, bool), alpha: i64, beta: i64) {
    let [m, n, k] = [0; 3].map(|_| random.below(20));
    let (rows_a, cols_a) = if trans.0 { (k, m) } else { (m, k) };
    let (rows_b, cols_b) = if trans.1 { (n, k) } else { (k, n) };
    let [lda, ldb, ldc] = [rows_a, rows_b, m].map(|rows| rows.max(1) + random.below(4));
    let (a, b, c) = (random.fill(lda * cols_a), random.fill(ldb * cols_b), random.fill(ldc * n));
    let at = |x: &[i64], ld: i64, transposed: bool, i: i64, j: i64| {
        x[if transposed { j + i * ld } else { i + j * ld } as usize]
    };
    let mut expected = c.clone();
    for (j, i) in (0..n).flat_map(|j| (0..m).map(move |i| (j, i))) {
        let sum: i64 = (0..k).map(|l| at(&a, lda, trans.0, i, l) * at(&b, ldb, trans.1, l, j)).sum();
        expected[(i + j * ldc) as usize] = alpha * sum + beta * c[(i + j * ldc) as usize];
    }
    let floats = |values: &[i64]| values.iter().map(|&value| T::of(value)).collect::<Vec<T>>();
    let (a, b, mut c) = (floats(&a), floats(&b), floats(&c));
    let call = GemmCall {
        trans_a: trans.0,
        trans_b: trans.1,
        m,
        n,
        k,
        alpha: alpha as f64,
        a: a.as_ptr().cast(),
        lda,
        b: b.as_ptr().cast(),
        ldb,
        beta: beta as f64,
        c: c.as_mut_ptr().cast(),
        ldc,
    };
    // SAFETY: the vectors hold ld * columns elements.
    unsafe { library.gemm(T::REAL, &call) }.unwrap();
    assert_eq!(c, floats(&expected), "{call:?}");
}

#[test]
fn every_installed_library_computes_what_integers_say() {
    for path in installed() {
        let library = Library::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        println!("{:?}", library.describe());
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for trans in [(false, false), (false, true), (true, false), (true, true)] {
            for (alpha, beta) in [(1, 0), (1, 1), (1, -1), (-2, 0), (-2, 1), (-2, -1)] {
                for _ in 0..8 {
                    compare::<f32>(&library, &mut random, trans, alpha, beta);
                    compare::<f64>(&library, &mut random, trans, alpha, beta);
                }
            }
        }
    }
}

/// A random small case of a problem: sizes below 20, strides a little above their least.
fn small_case(problem: &std::sync::Arc<Problem>, random: &mut Random) -> Option<Instance> {
    let mut named = BTreeMap::new();
    for p in &problem.params {
        let value = match (&p.domain, p.role) {
            (Domain::Choice { values, .. }, _) => values[random.below(values.len() as u64) as usize].clone(),
            (_, Role::Size) => Value::Int(1 + random.below(19)),
            (_, Role::Count) => Value::Int(1 + random.below(3)),
            (_, Role::Offset) => Value::Int(random.below(3)),
            _ => Value::Int(random.below(100)),
        };
        named.insert(p.name.clone(), value);
    }
    // Drawn strides that are too small are raised; what has no meaning is left out.
    let mut values = problem.plainest()?;
    for (i, p) in problem.params.iter().enumerate() {
        values[i] = p.store(&named[&p.name]).ok().filter(|v| p.allows(*v)).unwrap_or(p.least());
    }
    problem.repair(&mut values, |_| true).then_some(())?;
    problem.instance(Case { params: values, knobs: Knobs::new(), placement: Placement::END }).ok()
}

#[test]
fn every_routine_of_every_installed_library_gives_the_expected_values() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for path in installed() {
        for routine in Routine::all() {
            let described = Builtin::find(routine.problem).unwrap().problem();
            let spec = TargetSpec { library: Some(path.display().to_string()), ..spec("cblas") };
            let Ok(mut adapter) = Adapter::load(&spec, &described, None) else { continue };
            let problem = std::sync::Arc::new(described.narrowed(&adapter.describe().limits).unwrap());
            let mut run = 0;
            for _ in 0..300 {
                let Some(instance) = small_case(&problem, &mut random) else { continue };
                if adapter.footprint(&instance, &NO_CAPS) != Footprint::Whole {
                    continue;
                }
                run += 1;
                if is_known(&path, &adapter, &instance) {
                    continue;
                }
                let (wrong, strayed) = wrong_on(&mut adapter, &instance);
                let case = problem.short(&instance.case.params);
                assert!(wrong.is_empty() && !strayed, "{spec} {} {case}: {wrong:?}, stray {strayed}", routine.problem);
            }
            assert!(run > 100, "{spec} {}: {run}", routine.problem);
        }
    }
}

/// Defects of the libraries themselves: OpenBLAS takes the batch strides of complex matrices for numbers of reals, GSL takes
/// lda for ldc in syr2k.
fn is_known(path: &Path, adapter: &Adapter, instance: &Instance) -> bool {
    let is = |name: &str| path.to_string_lossy().contains(name) || adapter.describe().title.contains(name);
    match instance.problem.name.as_str() {
        "gemm" => is("OpenBLAS") && instance.get("batch") > 1 && instance.word("dtype").starts_with('c'),
        "syr2k" => is("gslcblas") && instance.get("lda") != instance.get("ldc"),
        _ => false,
    }
}

fn spec(text: &str) -> TargetSpec {
    text.parse().unwrap()
}

#[test]
fn a_core_type_is_taken_or_refused_in_one_sentence() {
    let path = Path::new(DEBIAN).join("libgslcblas.so.0");
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return;
    }
    let gemm = Builtin::find("gemm").unwrap().problem();
    let on = |settings: &str| spec(&format!("cblas,{settings}@{}", path.display()));
    let why = Adapter::load(&on("core=Haswell"), &gemm, None).err().unwrap();
    assert!(why.contains("no choice of core types"), "{why}");
    let why = Adapter::load(&on("threads=2"), &gemm, None).err().unwrap();
    assert!(why.contains("no interface"), "{why}");
}

#[test]
fn debian_libraries_have_32_bit_ints_and_the_expected_interface() {
    for (name, interface) in LIBRARIES {
        let path = Path::new(DEBIAN).join(name);
        if !path.exists() {
            println!("skipped: {} is missing", path.display());
            continue;
        }
        let found = describe(&path).unwrap();
        assert_eq!(
            (found.interface, found.decoration, found.int_width),
            (interface, Decoration::Plain, IntWidth::I32),
            "{name}"
        );
        assert!(found.evidence.contains("observed: lda, ldb and ldc"), "{name}: {}", found.evidence);
    }
}

#[test]
fn a_library_is_identified_by_path_build_id_and_digest() {
    let path = Path::new(DEBIAN).join("libgslcblas.so.0");
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return;
    }
    let identity = Library::open(&path).unwrap().identity();
    let value = |name: &str| {
        identity.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("{name}: {identity:?}")).1.clone()
    };
    assert_eq!(value("library soname"), "libgslcblas.so.0");
    assert_eq!(value("library build id").len(), 40);
    assert_eq!(value("library sha256").len(), 64);
    assert_eq!(value("version"), "unknown");
}

fn small_call(c: &mut [f64; 4]) -> GemmCall {
    let (trans_a, trans_b, m, n, k) = (false, false, 2, 2, 2);
    let a = c.as_ptr().cast();
    let c = c.as_mut_ptr().cast();
    GemmCall { trans_a, trans_b, m, n, k, alpha: 1.0, a, lda: 2, b: a, ldb: 2, beta: 0.0, c, ldc: 2 }
}

#[test]
fn arguments_that_libraries_exit_over_are_refused_before_the_call() {
    let mut memory = [0.0; 4];
    let good = small_call(&mut memory);
    let illegal = |call: GemmCall| match call.check() {
        Err(Refusal::Illegal { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(good.check(), Ok(()));
    assert_eq!(illegal(GemmCall { m: -1, ..good }), "m");
    assert_eq!(illegal(GemmCall { lda: 1, ..good }), "lda");
    assert_eq!(illegal(GemmCall { m: 0, lda: 0, ..good }), "lda");
    assert_eq!(illegal(GemmCall { trans_a: true, k: 3, ldb: 3, ..good }), "lda");
    assert_eq!(illegal(GemmCall { trans_b: true, n: 3, ..good }), "ldb");
    assert_eq!(illegal(GemmCall { ldc: 1, ..good }), "ldc");
    let message = GemmCall { lda: 1, ..good }.check().unwrap_err().to_string();
    assert_eq!(message, "lda = 1 must be at least 2 (m rows)");
}

#[test]
fn a_value_wider_than_the_librarys_int_is_refused_not_truncated() {
    for path in installed() {
        let library = Library::open(&path).unwrap();
        if library.int_width() == IntWidth::I64 {
            continue;
        }
        let mut memory = [0.0; 4];
        let call = GemmCall { m: 0, lda: 1 << 31, ..small_call(&mut memory) };
        // SAFETY: m is 0, and the call is refused.
        let refusal = unsafe { library.gemm(Real::F64, &call) };
        assert_eq!(refusal, Err(Refusal::DoesNotFit { name: "lda", value: 1 << 31 }));
    }
}

#[test]
fn files_that_are_no_blas_get_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("libblas.so");
    std::fs::write(&script, "INPUT(-lblas)\n").unwrap();
    let truncated = folder.path().join("libopenblas.so");
    std::fs::write(&truncated, b"\x7fELF\x02\x01\x01").unwrap();
    let error = |path: &Path| Library::open(path).err().unwrap();
    assert!(matches!(error(&folder.path().join("absent.so")), CblasError::Io { .. }));
    assert!(matches!(error(folder.path()), CblasError::Directory { .. }));
    assert!(matches!(error(&script), CblasError::NotElf { .. }));
    let load = error(&truncated).to_string();
    assert!(load.starts_with("failed to load") && load.contains("file too short"), "{load}");
    let libm = Path::new(DEBIAN).join("libm.so.6");
    if libm.exists() {
        assert!(matches!(error(&libm), CblasError::NoGemm { .. }));
    }
}

#[test]
fn a_search_knows_names_follows_links_and_lists_a_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["libopenblasp-r0.3.21.so", "libmkl_rt.so.3", "libblasphemy.so", "libm.so.6"] {
        std::fs::write(at(name), b"\x7fELF rest").unwrap();
    }
    std::fs::write(at("libcblas.so"), "INPUT(libcblas.so.3)").unwrap();
    std::os::unix::fs::symlink(at("libopenblasp-r0.3.21.so"), at("libopenblas.so.0")).unwrap();
    let root = folder.path().canonicalize().unwrap();
    let found = find_in(&[folder.path().to_path_buf(), folder.path().to_path_buf()]);
    assert_eq!(found, [root.join("libmkl_rt.so.3"), root.join("libopenblasp-r0.3.21.so")]);
}

#[test]
fn a_width_without_evidence_or_against_it_is_an_error() {
    let unseen = || Observed::Nothing("no memory".to_string());
    let says = |width| Some((width, "it says so".to_string()));
    let (i32, i64) = (Observed::Width(IntWidth::I32), Observed::Width(IntWidth::I64));
    assert!(matches!(width::decide(None, None, &unseen()), Err(CblasError::WidthUnknown { .. })));
    assert!(matches!(width::decide(None, says(IntWidth::I64), &i32), Err(CblasError::WidthContradiction { .. })));
    assert!(matches!(width::decide(None, says(IntWidth::I32), &i64), Err(CblasError::WidthContradiction { .. })));
    assert!(matches!(width::decide(Some(IntWidth::I32), None, &i64), Err(CblasError::WidthContradiction { .. })));
    assert!(matches!(width::decide(Some(IntWidth::I64), None, &i32), Err(CblasError::WidthContradiction { .. })));
    assert_eq!(width::decide(Some(IntWidth::I64), says(IntWidth::I32), &i64).unwrap().0, IntWidth::I64);
    assert_eq!(width::decide(Some(IntWidth::I32), None, &unseen()).unwrap().0, IntWidth::I32);
    assert_eq!(width::decide(None, None, &i64).unwrap().0, IntWidth::I64);
}
#[test]
fn decorated_names_are_those_that_builds_export() {
    let names = |decoration: Decoration| {
        [Interface::Cblas, Interface::Fortran].map(|interface| decoration.gemm_name(interface, 's'))
    };
    assert_eq!(names(Decoration::Plain), ["cblas_sgemm", "sgemm_"]);
    assert_eq!(names(Decoration::Suffix64), ["cblas_sgemm64_", "sgemm_64_"]);
    assert_eq!(names(Decoration::Scipy), ["scipy_cblas_sgemm", "scipy_sgemm_"]);
    assert_eq!(names(Decoration::Scipy64), ["scipy_cblas_sgemm64_", "scipy_sgemm_64_"]);
    assert_eq!(names(Decoration::Extended64), ["cblas_sgemm_64", "sgemm_64_"]);
}
