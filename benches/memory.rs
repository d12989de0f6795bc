//! Resident memory of the supervisor and its workers while a hunt runs: the real program on the clean model, sampled as
//! its cases go by. A million cases: `cargo bench --bench memory -- --cases 1000000`.
//!
//! "tables" is what the kernel holds in page tables, which a worker keeps growing by ranges far apart: the pool replaces a
//! worker after so many remapped ranges. RSS of a worker counts the pages of the cases in flight.

mod common;

use common::{PROGRAM, option, print_machine, print_table, row};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const CASES: u64 = 20_000;
const SAMPLES: u64 = 12;

fn main() {
    print_machine();
    let cases = option("--cases").unwrap_or(CASES);
    let out = tempfile::tempdir().expect("a temporary folder can be made");
    let mut child = Command::new(PROGRAM)
        .args(["gemm", "--target", "sim:clean", "--seed", "1", "--keep-going", "--json", "--cases", &cases.to_string()])
        .arg("--out")
        .arg(out.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
    let every = (cases / SAMPLES).max(1);
    let mut table = vec![row(&[&"cases", &"supervisor KiB", &"workers", &"largest worker KiB", &"its tables KiB"])];
    let (mut seen, mut last) = (0, String::new());
    for line in lines.map_while(Result::ok) {
        if line.starts_with(r#"{"event":"case""#) {
            seen += 1;
            if seen % every == 0 {
                table.push(sample(child.id(), seen));
            }
        } else if line.starts_with(r#"{"event":"finished""#) {
            last = line;
        }
    }
    let status = child.wait().expect("the program was started here");
    print_table(&table);
    let summary: serde_json::Value = serde_json::from_str(&last).unwrap_or_default();
    let summary = &summary["summary"];
    println!(
        "{} cases in {:.1} s, {} entries remapped, {} processes started, {status}",
        seen,
        summary["seconds"].as_f64().unwrap_or(f64::NAN),
        summary["remapped"],
        summary["processes"]
    );
}

fn sample(supervisor: u32, cases: u64) -> Vec<String> {
    let workers: Vec<(u64, u64)> =
        children(supervisor).into_iter().map(|pid| (kib(pid, "VmRSS:"), kib(pid, "VmPTE:"))).collect();
    let (resident, tables) = workers.iter().copied().max().unwrap_or_default();
    row(&[&cases, &kib(supervisor, "VmRSS:"), &workers.len(), &resident, &tables])
}

/// A field of /proc/PID/status; 0 for a process that is gone.
fn kib(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = text.lines().find_map(|l| l.strip_prefix(field));
    value.and_then(|v| v.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|t| std::fs::read_to_string(t.path().join("children")).ok());
    lists.flat_map(|l| l.split_whitespace().filter_map(|p| p.parse().ok()).collect::<Vec<u32>>()).collect()
}
