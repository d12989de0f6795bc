//! Hunts under way, and what may happen to them.

use super::{Run, program};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A hunt under way, whose events are read as they come.
pub struct Hunt {
    child: Child,
    lines: Receiver<String>,
    pub seen: Vec<String>,
}

impl Hunt {
    pub fn start(out: &Path, words: &str) -> Hunt {
        let words = format!("{words} --json --out {{out}}/out --regressions {{out}}/regressions");
        let args = words.split_whitespace().map(|w| w.replace("{out}", &out.display().to_string()));
        let mut child = program().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).try_for_each(|l| sender.send(l))
        });
        Hunt { child, lines, seen: vec![] }
    }

    /// Waits for an event.
    pub fn until(&mut self, event: &str) -> &mut Hunt {
        let wanted = format!("{{\"event\":\"{event}\"");
        while !self.seen.last().is_some_and(|l| l.starts_with(&wanted)) {
            let line = self.lines.recv_timeout(Duration::from_secs(60));
            self.seen.push(line.unwrap_or_else(|e| panic!("no event '{event}': {e}; seen {:#?}", self.seen)));
        }
        self
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, signal: i32) {
        kill(self.pid(), signal);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end, and checks that no worker outlives it.
    pub fn end(mut self) -> Run {
        let workers = children(self.pid());
        let status = self.child.wait().unwrap();
        self.seen.extend(self.lines.iter());
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        for worker in workers {
            let deadline = Instant::now() + Duration::from_secs(10);
            while is_alive(worker) {
                assert!(Instant::now() < deadline, "worker {worker} outlives its supervisor");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Run { code: status.code().unwrap_or(-1), stdout: self.seen.join("\n"), stderr }
    }
}

/// Sends a signal; a process that is gone already does not matter.
pub fn kill(pid: i32, signal: i32) {
    // SAFETY: a plain system call on the number of a process that this test started.
    unsafe { libc::kill(pid, signal) };
}

pub fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

pub fn children(parent: i32) -> Vec<i32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| stat(*pid).is_some_and(|(state, of)| of == parent && state != 'Z')).collect()
}

/// Numbers that look random, the same in every run of the test.
pub fn instants(n: u64, most_ms: u64) -> impl Iterator<Item = Duration> {
    (1..=n).map(move |i| Duration::from_millis(i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % most_ms))
}
