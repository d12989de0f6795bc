//! `run` with several libraries: one case on each, and where it turns bad and good.

use super::args::{Profile, RunArgs};
use super::exit::{ExitStatus, Failure};
use super::one;
use super::output;
use crate::campaign::{facts, shown};
use crate::exec::Verdict;
use crate::exec::history;
use crate::report::stdout::say;
use serde::Serialize;
use serde_json::json;

/// What one library made of the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Standing {
    /// It failed in every run.
    Bad,
    /// It failed in some runs.
    Flaky,
    /// It passed in every run.
    Good,
    /// It was refused or skipped.
    NotRun,
    /// The library cannot be used, or lacks the routine.
    NotOpened,
}

#[derive(Debug, Serialize)]
struct Row {
    library: String,
    title: String,
    standing: Standing,
    runs: u32,
    failed: u32,
    /// The first failure, or why nothing ran.
    what: String,
}

/// Runs the case on every library in the order given.
///
/// # Errors
/// One sentence and its exit status, where the case itself cannot be run anywhere.
pub fn run(args: &RunArgs) -> Result<ExitStatus, Failure> {
    if args.each_rank {
        return Err(Failure::usage("--each-rank runs on one library; name one --lib"));
    }
    if args.repeat > 1 {
        return Err(Failure::usage("--repeat runs on one library; name one --lib"));
    }
    let mut rows = vec![];
    for library in &args.library.lib {
        let row = row(args, library)?;
        if !args.exec.json {
            print(&row);
        }
        rows.push(row);
    }
    let ends = Ends::of(&rows);
    if args.exec.json {
        say!(
            "{}",
            json!({"event": "compared", "libraries": rows, "first_bad": ends.bad(&rows),
            "first_good_after_it": ends.good(&rows), "last_good_before_it": ends.before(&rows)})
        );
    } else {
        ends.print(&rows);
    }
    let any = |standing: &[Standing]| rows.iter().any(|r| standing.contains(&r.standing));
    Ok(match (any(&[Standing::Bad, Standing::Flaky]), any(&[Standing::NotOpened]), any(&[Standing::Good])) {
        (true, ..) => ExitStatus::Found,
        // A file that is not there must not look like a library that is good.
        (false, true, _) => ExitStatus::Setup,
        (false, false, true) => ExitStatus::Fine,
        (false, false, false) => ExitStatus::NothingRan,
    })
}

/// A library that is not there, lacks the routine, or breaks its worker leaves the others to be compared; Ctrl-C ends all.
fn row(args: &RunArgs, library: &str) -> Result<Row, Failure> {
    match tried(args, library) {
        Err(failure) if failure.status() != ExitStatus::Interrupted => {
            let (library, what) = (library.to_owned(), failure.to_string());
            Ok(Row { library, title: String::new(), standing: Standing::NotOpened, runs: 0, failed: 0, what })
        }
        row => row,
    }
}

fn tried(args: &RunArgs, library: &str) -> Result<Row, Failure> {
    let mut alone = args.clone();
    alone.library.lib = vec![library.to_owned()];
    alone.compared = true;
    let one = one::open(&alone, Profile::Strided, None)?;
    let pool = &one.session.pool;
    let (library, title) = (library.to_owned(), pool.hello().description.title.clone());
    let before = one.input.finding.as_ref().map(|f| f.facts().before(&one.case)).unwrap_or_default();
    if let Some(what) = history::declined(pool, &before, args.seed)? {
        return Ok(Row { library, title, standing: Standing::NotRun, runs: 0, failed: 0, what });
    }
    let (mut runs, mut failed, mut what) = (0, 0, String::new());
    while runs < args.exec.confirm {
        let lost = || Failure::setup(history::LOST);
        let verdict =
            history::run(pool, &before, &one.case, args.seed, output::gap_rule(&args.exec))?.ok_or_else(lost)?.verdict;
        if verdict.is_bad() {
            failed += 1;
        } else if !verdict.is_pass() {
            what = said(&one, &verdict);
            break;
        }
        if what.is_empty() && verdict.is_bad() {
            what = said(&one, &verdict);
        }
        runs += 1;
    }
    let standing = match (runs, failed) {
        (0, _) => Standing::NotRun,
        (_, 0) => Standing::Good,
        (runs, failed) if failed == runs => Standing::Bad,
        _ => Standing::Flaky,
    };
    Ok(Row { library, title, standing, runs, failed, what })
}

/// A verdict that is no pass, in a few words.
fn said(one: &one::One, verdict: &Verdict) -> String {
    let problem = one.session.pool.problem();
    let evidence = facts::evidence(verdict, facts::element_bytes(problem, &one.case, verdict));
    let case = shown(problem, &one.case).short;
    match verdict {
        Verdict::Refused { detail } | Verdict::Skipped { detail, .. } => format!("{}: {detail}", verdict.word()),
        _ => format!("{} of {case}: {}", verdict.word(), evidence.join("; ")),
    }
}

fn print(row: &Row) {
    let word = match row.standing {
        Standing::Bad => "bad",
        Standing::Flaky => "flaky",
        Standing::Good => "good",
        Standing::NotRun | Standing::NotOpened => "not run",
    };
    let counts = if row.runs > 0 { format!(", {} of {} runs failed", row.failed, row.runs) } else { String::new() };
    say!("{word:<8} {}{counts}", row.library);
    for line in [&row.title, &row.what].into_iter().filter(|l| !l.is_empty()) {
        say!("         {line}");
    }
}

/// Where along the list the case turns.
struct Ends {
    bad: Option<usize>,
    good: Option<usize>,
    before: Option<usize>,
}

impl Ends {
    fn of(rows: &[Row]) -> Ends {
        let is = |i: usize, standing: &[Standing]| standing.contains(&rows[i].standing);
        let bad = (0..rows.len()).find(|i| is(*i, &[Standing::Bad, Standing::Flaky]));
        let good = bad.and_then(|bad| (bad..rows.len()).find(|i| is(*i, &[Standing::Good])));
        let before = bad.and_then(|bad| (0..bad).rev().find(|i| is(*i, &[Standing::Good])));
        Ends { bad, good, before }
    }

    fn bad<'a>(&self, rows: &'a [Row]) -> Option<&'a str> {
        self.bad.map(|i| rows[i].library.as_str())
    }

    fn good<'a>(&self, rows: &'a [Row]) -> Option<&'a str> {
        self.good.map(|i| rows[i].library.as_str())
    }

    fn before<'a>(&self, rows: &'a [Row]) -> Option<&'a str> {
        self.before.map(|i| rows[i].library.as_str())
    }

    fn print(&self, rows: &[Row]) {
        let none = "none of these";
        say!();
        say!("first bad            {}", self.bad(rows).unwrap_or(none));
        if self.bad.is_some() {
            say!("last good before it  {}", self.before(rows).unwrap_or(none));
            say!("first good after it  {}", self.good(rows).unwrap_or(none));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_the_first_bad_library_and_the_good_ones_beside_it() {
        let rows = |words: &str| {
            let row = |c: char| Row {
                library: c.to_string(),
                title: String::new(),
                standing: match c {
                    'b' => Standing::Bad,
                    'f' => Standing::Flaky,
                    'g' => Standing::Good,
                    _ => Standing::NotRun,
                },
                runs: 0,
                failed: 0,
                what: String::new(),
            };
            words.chars().map(row).collect::<Vec<_>>()
        };
        let ends = |words: &str| {
            let e = Ends::of(&rows(words));
            (e.bad, e.good, e.before)
        };
        assert_eq!(ends("gg-bb-gg"), (Some(3), Some(6), Some(1)));
        assert_eq!(ends("fg"), (Some(0), Some(1), None));
        assert_eq!(ends("gg"), (None, None, None));
        assert_eq!(ends("-b"), (Some(1), None, None));
    }
}
