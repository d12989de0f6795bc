//! `status`: how the hunt of a folder stands, for another terminal.

use super::exit::{ExitStatus, Failure};
use crate::finding::store;
use crate::report::status::{Doing, STATUS_FORMAT, Standing};
use crate::report::stdout::say;
use crate::report::terminal;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Whether the hunt still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alive {
    Running,
    /// It ended in order.
    Ended,
    /// Its process is gone, and said nothing at its end.
    Killed,
}

/// Says how the last hunt of the folder stands.
///
/// # Errors
/// Where there was none.
pub fn run(out: &Path, json: bool) -> Result<ExitStatus, Failure> {
    // Before the file is read: a hunt that ends meanwhile has written its end.
    let user = store::user(out).map_err(|e| Failure::usage(format!("failed to read {} ({e})", out.display())))?;
    let standing = read(out)?;
    let alive = match (&standing.ended, user) {
        (Some(_), _) => Alive::Ended,
        (None, Some(pid)) if pid == standing.pid => Alive::Running,
        (None, _) => Alive::Killed,
    };
    if json {
        let word = ["running", "ended", "killed"][alive as usize];
        let mut object = json!({"event": "status", "state": word});
        if let (Some(all), Ok(serde_json::Value::Object(standing))) =
            (object.as_object_mut(), serde_json::to_value(&standing))
        {
            all.extend(standing);
        }
        say!("{object}");
        return Ok(ExitStatus::Fine);
    }
    for line in lines(out, &standing, alive) {
        say!("{line}");
    }
    if let Some(pid) = user.filter(|pid| *pid != standing.pid) {
        say!("another run (process {pid}) uses the folder now");
    }
    Ok(ExitStatus::Fine)
}

fn read(out: &Path) -> Result<Standing, Failure> {
    let path = store::status(out);
    let text = std::fs::read_to_string(&path).map_err(|e| {
        let none = e.kind() == std::io::ErrorKind::NotFound;
        let text = format!("there was no hunt in {}; name the folder that its --out names", out.display());
        if none { Failure::usage(text) } else { Failure::usage(format!("failed to read {} ({e})", path.display())) }
    })?;
    let standing: Option<Standing> = serde_json::from_str(&text).ok().filter(|s: &Standing| s.status == STATUS_FORMAT);
    standing.ok_or_else(|| {
        let text = "does not say how a hunt stands; the findings beside it, and --resume, do not depend on it";
        Failure::usage(format!("{} {text}", path.display()))
    })
}

fn lines(out: &Path, s: &Standing, alive: Alive) -> Vec<String> {
    let shard = if s.shard == "1/1" { String::new() } else { format!(", shard {}", s.shard) };
    let mut lines = vec![format!("{} on {}, seed {}{shard}, in {}", s.problem, s.target, s.seed, out.display())];
    lines.push(match (alive, &s.ended) {
        (Alive::Running, _) => format!("running since {} (process {}): {}", s.began, s.pid, doing(&s.doing)),
        (Alive::Ended, Some(why)) => format!("began {}, ended {}: {why}", s.began, s.updated),
        (Alive::Ended, None) | (Alive::Killed, _) => {
            format!("began {}, killed: its process {} is gone, last heard of {}", s.began, s.pid, s.updated)
        }
    });
    let all = s.tally.all();
    let rate = if s.seconds > 0.0 { all as f64 / s.seconds } else { 0.0 };
    let of = s.cases.map_or_else(String::new, |n| format!(" of {n}"));
    lines.push(format!("{all}{of} cases in {:.0} s ({rate:.0}/s): {}", s.seconds, terminal::counts(&s.tally)));
    if alive == Alive::Running {
        lines.push(end(s, rate));
    }
    for name in &s.findings {
        lines.push(format!("found: {}", store::findings(out).join(format!("{name}.toml")).display()));
    }
    for (name, count) in &s.known {
        lines.push(format!("known: {name}, {count} more case{}", if *count == 1 { "" } else { "s" }));
    }
    if alive != Alive::Running && !s.complete {
        lines.push(format!("go on with: {} --resume", shell(&s.command)));
    }
    lines
}

fn doing(doing: &Doing) -> String {
    match doing {
        Doing::Searching => "searching".to_owned(),
        Doing::Confirming => "confirming a failure".to_owned(),
        Doing::Shrinking { case, best } => format!("shrinking case {case}, best so far {best}"),
    }
}

/// When it will end.
fn end(s: &Standing, rate: f64) -> String {
    let mut ends = vec![];
    let left = s.cases.map(|n| n.saturating_sub(s.tally.all()) as f64 / rate);
    if let Some(left) = left.filter(|l| l.is_finite()) {
        ends.push(format!("in about {}", humantime::format_duration(Duration::from_secs(left.min(1e9) as u64))));
    }
    if let Some(until) = &s.until {
        let left = humantime::parse_rfc3339(until).ok().and_then(|t| t.duration_since(SystemTime::now()).ok());
        let left = left.map_or_else(String::new, |l| {
            format!(" (in {})", humantime::format_duration(Duration::from_secs(l.as_secs())))
        });
        ends.push(format!("at {until}{left}"));
    }
    if !s.keep_going {
        ends.push("at its first finding".to_owned());
    }
    if ends.is_empty() { "ends when it is told to".to_owned() } else { format!("ends {}", ends.join(", or ")) }
}

/// Words as a shell reads them.
fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./=,:+^@%-".contains(c);
    let quoted = |w: &String| match !w.is_empty() && w.chars().all(plain) {
        true => w.clone(),
        false => format!("'{}'", w.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_so_that_a_shell_reads_it_again() {
        let words = ["gemm", "--set", "m=1,ldb=2^31", "my folder", "it's", ""].map(str::to_owned);
        assert_eq!(shell(&words), r"gemm --set m=1,ldb=2^31 'my folder' 'it'\''s' ''");
    }
}
