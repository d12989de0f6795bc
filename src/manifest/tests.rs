use super::*;
use crate::problem::{Case, Narrow, Placement, Role};
use proptest::prelude::*;

/// The manifest of the contract.
const TOY: &str = r#"
name = "toy-gemm"
command = ["python3", "toy_gemm.py"]
start_timeout_s = 30
case_timeout_s = 0.5
workers = 2
fault_text = ["my device fault"]
constraints = ["lda >= if(transA, M, K)", "M * K <= 2^36"]

[params.M]
min = 1
max = 1048576
[params.K]
min = 1
max = 65_536
step = 3
[params.lda]
min = 1
max = 8589934592
role = "stride"
[params.transA]
values = [false, true]
[params.dtype]
values = ["f32", "bf16"]
default = "bf16"
[params.placement]
role = "placement"
values = ["end", "start"]

[[operands]]
name = "A"
dtype = "{dtype}"
access = "r"
dims = [["if(transA, K, M)", "lda"], ["if(transA, M, K)", "1"]]
allocated = "if(transA, K, M) * lda"
align = 256
[[operands]]
name = "C"
bytes = 4
access = "rw"
gaps = "read"
offset = "sizeof(A)"
when = "M > 1"
dims = [["M", "1"]]

[knobs]
tile = [64, 128]
[env]
TOY = "1"
"#;

fn parse(text: &str) -> Result<Manifest, String> {
    Manifest::parse(Path::new("toy.toml"), text).map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    let why = parse(text).map(drop).unwrap_err();
    assert!(!why.contains('\n') && why.starts_with("toy.toml, line "), "{why}");
    why
}

#[test]
fn the_manifest_of_the_contract_is_read() {
    let m = parse(TOY).unwrap();
    assert_eq!((m.name(), m.workers), ("toy-gemm", Some(2)));
    assert_eq!((m.start_timeout, m.case_timeout), (Duration::from_secs(30), Duration::from_millis(500)));
    assert_eq!(m.knobs["tile"], [Value::Int(64), Value::Int(128)]);
    assert_eq!((m.env["TOY"].as_str(), m.fault_texts[0].as_str()), ("1", "my device fault"));
    let p = &m.problem;
    assert_eq!(p.params[2].role, Role::Stride);
    assert_eq!((p.params[1].step(), p.params[4].default), (3, Some(1)));
    assert_eq!(m.extras[0].align, 256);

    let named = [("M", 4), ("K", 7)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
    let params = p.complete(&named).unwrap();
    let case = Case { params, knobs: Default::default(), placement: Placement::END };
    let instance = p.instance(case).unwrap();
    let (a, c) = (instance.view(0).unwrap(), instance.view(1).unwrap());
    assert_eq!((a.element_bytes, a.lowest(0), a.highest(0)), (2, 0, 3 * 7 + 6));
    assert_eq!((c.element_bytes, c.lowest(0), c.highest(0)), (4, 2, 5));
}

#[test]
fn what_is_allocated_holds_the_elements_and_counts_against_the_memory() {
    let m = parse(TOY).unwrap();
    let small = TOY.replace("allocated = \"if(transA, K, M) * lda\"", "allocated = \"M + K\"");
    let named = [("M", 4), ("K", 7)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
    assert!(parse(&small).unwrap().problem.complete(&named).is_err(), "28 elements do not fit into 11");
    let Some(Narrow::Require { condition }) = m.memory_limit(1000) else { panic!() };
    let narrowed = m.problem.narrowed(&[Narrow::Require { condition }]).unwrap();
    assert!(narrowed.complete(&named).is_ok());
    let large = [("M", 4), ("K", 400)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into();
    assert!(narrowed.complete(&large).is_err() && m.problem.complete(&large).is_ok());
}

#[test]
fn every_error_names_line_and_key_and_says_what_to_write() {
    // What is replaced, by what, and parts of what is said.
    let table = [
        ("name = \"toy-gemm\"", "", &["line 1", "name is missing: write name ="][..]),
        ("name = \"toy-gemm\"", "name = \"toy gemm\"", &["line 2", "name: write a letter"]),
        ("name = \"toy-gemm\"", "name = 7", &["name: this is integer; write a string"]),
        ("name = \"toy-gemm\"", "name = ", &["line 2", "not TOML"]),
        ("name = \"toy-gemm\"", "nmae = \"x\"", &["line 2", "nmae is no key of a manifest"]),
        ("[\"python3\", \"toy_gemm.py\"]", "[]", &["line 3", "command: name a program first"]),
        ("[\"python3\", \"toy_gemm.py\"]", "\"python3 toy.py\"", &["command: this is string; write a list"]),
        ("[\"python3\", \"toy_gemm.py\"]", "[1]", &["command[0]: this is integer"]),
        ("start_timeout_s = 30", "start_timeout_s = 0", &["line 4", "start_timeout_s", "0.001 to 1000000"]),
        ("start_timeout_s = 30", "start_timeout_s = nan", &["0.001 to 1000000"]),
        ("workers = 2", "workers = 0", &["line 6", "from 1 to 256"]),
        ("\"my device fault\"", "\"\"", &["fault_text", "is empty"]),
        ("lda >= if(transA, M, K)", "ldx >= M", &["line 8", "constraints[0]", "unknown parameter `ldx` (column 1)"]),
        ("M * K <= 2^36", "M * K", &["constraints[1]", "expected a condition"]),
        ("M * K <= 2^36", "M * K < 0", &["no valid case was found"]),
        ("M * K <= 2^36", "M / (K - K) > 0", &["no valid case was found"]),
        ("max = 1048576", "", &["params.M.max is missing"]),
        ("max = 1048576", "max = 0", &["line 12", "the maximum 0 is below the minimum 1"]),
        ("max = 1048576", "max = 1e6", &["params.M.max: this is float; write an integer"]),
        ("max = 1048576", "max = 9223372036854775808", &["does not fit signed 64 bits"]),
        ("max = 1048576", "max = 9223372036854775807", &["between -2^62 and 2^62"]),
        ("step = 3", "step = 0", &["step is 1 or more"]),
        ("role = \"stride\"", "role = \"pitch\"", &["'pitch' is not one of size, stride, count"]),
        ("[params.K]", "[params.if]", &["'if' is a word of the expression language"]),
        ("[params.K]", "[params.\"K.x\"]", &["a name is a letter"]),
        ("[false, true]", "[false, 1]", &["one type"]),
        ("[false, true]", "[]", &["1 to 1000 values"]),
        ("[\"f32\", \"bf16\"]", "[\"f32\", \"f32\"]", &["f32 is listed twice"]),
        ("[\"f32\", \"bf16\"]", "[\"f32\", \"f31\"]", &["default", "is not one of f32, f31"]),
        ("default = \"bf16\"", "min = 1", &["either values, or min and max"]),
        ("[\"end\", \"start\"]", "[\"end\", \"middle\"]", &["\"end\" or \"start\""]),
        ("\"{dtype}\"", "\"{type}\"", &["operands[0].dtype: there is no parameter 'type'"]),
        ("\"{dtype}\"", "\"{M}\"", &["M is an integer"]),
        ("\"{dtype}\"", "\"float\"", &["'float' is not one of i8, u8"]),
        ("bytes = 4", "bytes = 0", &["operands[1].bytes", "1 to 65536"]),
        ("bytes = 4", "", &["dtype is missing"]),
        ("access = \"rw\"", "access = \"wr\"", &["'wr' is not one of r, w, rw"]),
        ("gaps = \"read\"", "gaps = \"write\"", &["'write' is not one of none, read"]),
        ("align = 256", "align = 3", &["power of two"]),
        ("align = 256", "alias = \"A\"", &["does not lie in itself"]),
        ("align = 256", "alias = \"B\"", &["there is no operand 'B'"]),
        ("name = \"C\"", "name = \"A\"", &["there is another operand 'A'"]),
        ("dims = [[\"M\", \"1\"]]", "dims = [[\"M\"]]", &["operands[1].dims[0]: a dimension is a pair"]),
        ("dims = [[\"M\", \"1\"]]", "dims = [[\"M\", 1]]", &["operands[1].dims[0][1]: this is integer"]),
        ("dims = [[\"M\", \"1\"]]", "dims = [[\"M\", \"1 +\"]]", &["dims[0][1]: '1 +': expected a value"]),
        ("dims = [[\"M\", \"1\"]]", "", &["operands[1].dims is missing"]),
        ("tile = [64, 128]", "tile = 64", &["knobs.tile: this is integer; write a list"]),
        ("TOY = \"1\"", "TOY = 1", &["env.TOY: this is integer; write a string"]),
    ];
    for (from, to, parts) in table {
        assert!(TOY.contains(from), "{from}");
        let why = refused(&TOY.replacen(from, to, 1));
        for part in parts {
            assert!(why.contains(part), "{to}: {why}");
        }
    }
}

#[test]
fn a_target_is_its_name_its_digest_and_its_path() {
    let m = parse(TOY).unwrap();
    let spec = m.spec();
    assert_eq!(spec.to_string().parse::<TargetSpec>(), Ok(spec.clone()));
    assert_eq!(m.change_since(&spec), None);
    let other = parse(&format!("{TOY}\n# changed")).unwrap();
    assert!(other.change_since(&spec).unwrap().contains(m.short_digest()));
}

#[test]
fn a_manifest_is_found_from_the_working_folder_or_above_the_finding() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("regressions/toy");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(dir.path().join("toy.toml"), TOY).unwrap();
    let found = find("toy.toml", Some(&deep)).unwrap();
    assert_eq!(std::fs::canonicalize(found).unwrap(), std::fs::canonicalize(dir.path().join("toy.toml")).unwrap());
    assert_eq!(find("toy.toml", None), None);
    assert_eq!(find("~/no/such/toy.toml", None), None);
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(shown(&here), "Cargo.toml");
}

proptest! {
    #[test]
    fn a_mutated_manifest_is_read_or_refused_in_one_sentence(
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..12, "\\PC{0,3}|[0-9]{1,20}|[\\[\\]{}=\"',.\n#^*+()-]|min|max|-1|if\\(|lda"),
            1..6
        )
    ) {
        let mut bytes = TOY.as_bytes().to_vec();
        for (at, remove, insert) in edits {
            let at = at.index(bytes.len().max(1)).min(bytes.len());
            let end = (at + remove).min(bytes.len());
            bytes.splice(at..end, insert.bytes());
        }
        if let Err(e) = parse(&String::from_utf8_lossy(&bytes)) {
            prop_assert!(!e.trim().is_empty() && !e.contains('\n') && e.starts_with("toy.toml, line "), "{}", e);
        }
    }

    #[test]
    fn ranges_of_any_sign_and_size_have_cases(
        low in -(1i64 << 62)..=1 << 62, high in -(1i64 << 62)..=1 << 62, step in 1i64..=1 << 62
    ) {
        let text = TOY.replace("min = 1\nmax = 8589934592", &format!("min = {low}\nmax = {high}\nstep = {step}"));
        if let Ok(m) = parse(&text) {
            let plain = m.problem.plainest();
            prop_assert!(plain.is_none_or(|p| m.problem.check(&p).is_ok()));
        }
    }
}
