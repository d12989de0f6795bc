//! Real libraries: ATLAS and GSL fault where an independent enumerator says so, the reference BLAS never does.

mod common;

use common::{Run, count, findings, hunt, library, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;

/// Work up to which the enumerator looks in any case, and the most that a minimal case may have.
const WORK: i64 = 5;
const MOST_WORK: i64 = 12;

/// Parameters that the enumerator knows, in its order.
const PARAMS: [&str; 11] = ["transA", "transB", "m", "n", "k", "lda", "ldb", "ldc", "dtype", "alpha", "beta"];

/// The enumerator, compiled.
struct Enumerator {
    dir: TempDir,
}

/// A line of its list: signature, then parameters.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    operand: String,
    access: String,
    place: String,
    params: Vec<String>,
}

impl Enumerator {
    /// `None` where there is no C compiler; says so.
    fn compile() -> Option<Enumerator> {
        let dir = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/enumerate_gemm.c");
        let mut cc = Command::new("cc");
        cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        match cc.arg(dir.path().join("enumerate")).arg(source).arg("-ldl").output() {
            Err(e) => {
                println!("not run: no C compiler ({e})");
                None
            }
            Ok(o) => {
                assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
                Some(Enumerator { dir })
            }
        }
    }

    /// All 1-minimal cases up to a work, with features no less plain than those of a finding.
    fn list(&self, library: &Path, found: &Found, limit: i64) -> Vec<Listed> {
        let mut c = Command::new(self.dir.path().join("enumerate"));
        c.arg(library).arg(format!("limit={limit}")).arg(format!("placement={}", found.placement));
        for name in ["transA", "transB", "dtype", "alpha", "beta"] {
            c.arg(format!("{name}={}", found.params[name]));
        }
        let output = c.output().unwrap();
        assert!(output.status.success(), "{c:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|l| l.starts_with("signature ")).map(Listed::read).collect()
    }
}

impl Listed {
    fn read(line: &str) -> Listed {
        let pairs: BTreeMap<&str, &str> = line.split(' ').filter_map(|w| w.split_once('=')).collect();
        let word = |name: &str| pairs[name].to_owned();
        Listed {
            operand: word("operand"),
            access: word("access"),
            place: word("place"),
            params: PARAMS.iter().map(|p| word(p)).collect(),
        }
    }

    fn work(&self) -> i64 {
        self.params[2..5].iter().map(|v| v.parse::<i64>().unwrap()).product()
    }
}

/// What a finding file states.
struct Found {
    placement: String,
    signature: toml::Table,
    params: BTreeMap<String, String>,
    text: String,
}

impl Found {
    /// The one finding of an output folder.
    fn only(out: &Path) -> Found {
        let files = findings(out);
        assert_eq!(files.len(), 1, "{files:?}");
        let text = std::fs::read_to_string(&files[0]).unwrap();
        let file: toml::Table = text.parse().unwrap();
        let minimal = file["minimal"].as_table().unwrap();
        let params = minimal["params"].as_table().unwrap();
        let word = |v: &toml::Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        Found {
            placement: minimal["placement"].as_str().unwrap().to_owned(),
            signature: file["signature"].as_table().unwrap().clone(),
            params: params.iter().map(|(k, v)| (k.clone(), word(v))).collect(),
            text,
        }
    }

    /// As the enumerator would list it.
    fn listed(&self) -> Listed {
        let part = |name: &str| self.signature.get(name).map_or("none", |v| v.as_str().unwrap()).to_owned();
        Listed {
            operand: part("operand"),
            access: part("access"),
            place: if self.signature.contains_key("place") { part("place") } else { "wrong".to_owned() },
            params: PARAMS.iter().map(|p| self.params[*p].clone()).collect(),
        }
    }
}

/// A hunt on a library ends within a minute in a case that the enumerator lists, at its placement, as minimal for its
/// signature. The list goes up to `WORK` multiply-adds, and as far as the case where that has more.
fn a_hunt_ends_in_a_case_that_the_enumerator_lists(name: &str) {
    let (Some(library), Some(enumerator)) = (library(name), Enumerator::compile()) else { return };
    for seed in 1..=count(2, 5) {
        let dir = tempfile::tempdir().unwrap();
        let started = Instant::now();
        hunt(dir.path(), &format!("gemm --target cblas --lib {} --seed {seed}", library.display())).expect(1);
        let took = started.elapsed();
        assert!(took < common::within(60), "seed {seed} took {took:?}");
        let found = Found::only(&dir.path().join("out"));
        let mine = found.listed();
        let same = |l: &Listed| (&l.operand, &l.access, &l.place) == (&mine.operand, &mine.access, &mine.place);
        // Some signatures have nothing smaller: ATLAS reads past A in no case below m=1 n=2 k=3.
        assert!(mine.work() <= MOST_WORK, "work {}: {mine:?}\n{}", mine.work(), found.text);
        let list = enumerator.list(&library, &found, mine.work().max(WORK));
        let alike: Vec<&Listed> = list.iter().filter(|l| same(l)).collect();
        println!("seed {seed}: {mine:?} in {:.1} s, placed {}", took.as_secs_f64(), found.placement);
        assert!(alike.contains(&&mine), "not listed: {mine:?}\nlisted: {alike:#?}\n{}", found.text);
    }
}

#[test]
fn a_hunt_on_atlas_ends_in_a_minimal_case() {
    a_hunt_ends_in_a_case_that_the_enumerator_lists("libcblas.so.3");
}

#[test]
fn a_hunt_on_gsl_ends_in_a_minimal_case() {
    a_hunt_ends_in_a_case_that_the_enumerator_lists("libgslcblas.so.0");
}

/// Shrinks a case, and checks the pair of one parameter and the operand and distance of the fault.
fn a_shrink_ends_at(name: &str, case: &str, pins: &str, pair: (&str, i64), hit: (&str, i64)) {
    let Some(library) = library(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    let lib = library.display();
    let words = format!("shrink {case} {pins} --target cblas --lib {lib} --json --out {{out}}/out");
    let found = run(dir.path(), &words).expect(1).events_of("finding").pop().unwrap();
    let witnesses = found["summary"]["witnesses"].as_array().unwrap();
    let witness = witnesses.iter().find(|w| w["param"] == pair.0).unwrap_or_else(|| panic!("{found:#}"));
    let values = (witness["good"].as_i64(), witness["bad"].as_i64());
    assert_eq!(values, (Some(pair.1 - 1), Some(pair.1)), "{found:#}");
    let file: toml::Table = Found::only(&dir.path().join("out")).text.parse().unwrap();
    let at = &file["fault"]["hit"];
    assert_eq!((at["operand"].as_str(), at["from_base_elements"].as_integer()), (Some(hit.0), Some(hit.1)), "{at}");
}

#[test]
fn atlas_dgemm_is_good_at_2_to_the_29_less_1_and_reads_before_b_at_2_to_the_29() {
    let pins = "--set m=1 --set n=5 --set k=1 --set transA=N --set transB=N --set dtype=f64";
    let case = "gemm:m=1,n=5,k=1,ldb=900000000,dtype=f64,beta=1";
    a_shrink_ends_at("libcblas.so.3", case, pins, ("ldb", 1 << 29), ("B", -(1 << 31)));
}

#[test]
fn gsl_sgemm_is_good_at_2_to_the_30_less_1_and_accesses_before_c_at_2_to_the_30() {
    let pins = "--set m=1 --set n=3 --set k=1 --set transA=N --set transB=N --set dtype=f32";
    let case = "gemm:m=1,n=3,k=1,ldc=1500000000,dtype=f32,alpha=-2";
    a_shrink_ends_at("libgslcblas.so.0", case, pins, ("ldc", 1 << 30), ("C", -(1 << 31)));
}

#[test]
fn the_reference_blas_never_fails_and_is_hunted_where_offsets_are_large_and_edges_near() {
    let Some(library) = library("blas/libblas.so.3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let cases = count(2_000, 20_000);
    let words = format!("gemm --target cblas --lib {} --seed 1 --cases {cases} --keep-going", library.display());
    let summary = hunt(dir.path(), &words).expect(0).summary();
    assert_eq!(summary["findings"], Value::Array(vec![]), "{summary:#}");
    let tally = |word: &str| summary["tally"][word].as_u64().unwrap_or(0);
    let coverage = &summary["coverage"];
    let of = |word: &str| coverage[word].as_u64().unwrap();
    println!("{}", serde_json::to_string_pretty(coverage).unwrap());
    let ran = of("ran");
    assert_eq!(tally("pass"), ran, "{summary:#}");
    assert_eq!(ran + of("refused") + of("skipped"), cases);
    assert!(of("refused") + of("skipped") <= cases / 10, "{coverage:#}");
    assert!(of("past") >= cases / 4, "{coverage:#}");
    assert!(of("at_edge") >= cases / 4, "{coverage:#}");
    for operand in ["A", "B", "C"] {
        let counts = coverage["operands"].as_array().unwrap().iter().find(|o| o["name"] == operand).unwrap();
        for (field, bits) in ["past_elements", "past_bytes"].iter().flat_map(|f| [(f, 31), (f, 32)]) {
            let cases = counts[*field][bits - 31].as_u64().unwrap();
            assert!(cases > 0, "no case of {operand} with an offset past 2^{bits} ({field}): {coverage:#}");
        }
        assert!(counts["at_edge"].as_u64().unwrap() > 0, "{coverage:#}");
    }
}

/// The events of a case by its number.
fn case(run: &Run, id: &Value) -> Value {
    run.events_of("case").into_iter().find(|c| c["id"] == *id).unwrap_or_else(|| panic!("no case {id}"))
}

#[test]
fn a_finding_of_atlas_is_known_in_the_next_run_where_the_same_case_faults_again() {
    let Some(library) = library("libcblas.so.3") else { return };
    let dir = tempfile::tempdir().unwrap();
    let words = format!("gemm --target cblas --lib {} --seed 5", library.display());
    let first = hunt(dir.path(), &words).expect(1);
    let files = findings(&dir.path().join("out"));
    let bytes = std::fs::read(&files[0]).unwrap();
    let again = hunt(dir.path(), &words).expect(0);
    let id = &first.events_of("confirmed")[0]["id"];
    assert_eq!(case(&first, id)["case"], case(&again, id)["case"]);
    assert!(case(&again, id)["verdict"]["fault"].is_object(), "{}", case(&again, id));
    assert!(again.events_of("known").iter().any(|k| k["id"] == *id));
    assert!(again.events_of("finding").is_empty());
    assert_eq!(findings(&dir.path().join("out")), files);
    assert_eq!(std::fs::read(&files[0]).unwrap(), bytes, "the file of a known finding must not change");
}
