//! Workers as processes of their own: faults kill them at the address that the plan predicts.

use super::super::oracle::BREAK_VARIABLE;
use super::{case, line};
use crate::device::cpu::{CpuArena, FaultRecord};
use crate::exec::channel::{LineChannel, NoSide, ReadOutcome};
use crate::exec::child::{Child, Exit};
use crate::exec::intent::IntentPage;
use crate::exec::protocol::{Answer, AskKnobs, Hello, SetupFailed, WireCase};
use crate::exec::spawn::{Inherit, InheritFd, Spawner};
use crate::exec::testing::{alone, is_alone};
use crate::exec::verdict::{Fault, Place, Verdict};
use crate::exec::worker::{CHANNEL_VARIABLE, INTENT_VARIABLE};
use crate::problem::{Builtin, Instance};
use crate::target::selftest::{Plant, expected};
use crate::worker::{Layout, WorkerOptions};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// A worker process: this test program with one test in it.
struct Worker {
    child: Child,
    channel: LineChannel,
    intent: IntentPage,
}

impl Worker {
    fn start(test: &str, env: &[(&str, &str)]) -> Worker {
        let intent = IntentPage::create().unwrap();
        let (channel, theirs) = LineChannel::pair().unwrap();
        let mut spec = alone(&format!("worker::tests::process::{test}"));
        spec.env_set.extend(env.iter().map(|(k, v)| (k.into(), v.into())));
        spec.inherit = vec![
            Inherit { variable: CHANNEL_VARIABLE.into(), fd: InheritFd::Given(theirs) },
            Inherit { variable: INTENT_VARIABLE.into(), fd: InheritFd::Lent(intent.as_raw_fd()) },
        ];
        Worker { child: Spawner::start().unwrap().spawn(spec).unwrap(), channel, intent }
    }

    fn read(&mut self) -> ReadOutcome {
        self.channel.read_line(Some(Instant::now() + Duration::from_secs(30)), &mut NoSide).unwrap()
    }

    fn line(&mut self) -> String {
        match self.read() {
            ReadOutcome::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, line: &str) {
        self.channel.write_line(line, None, &mut NoSide).unwrap();
    }
}

fn be_a_worker(target: &str) -> ! {
    let options = WorkerOptions {
        problem: "gemm".to_owned(),
        target: target.parse().unwrap(),
        int_width: None,
        arena_bytes: CpuArena::WANTED_BYTES,
        identify: true,
    };
    std::process::exit(crate::worker::main(options))
}

#[test]
fn a_planted_fault_kills_the_worker_at_its_address() {
    if is_alone() {
        be_a_worker("selftest");
    }
    for (plant, text, place) in [
        (Plant::Guard, "m=5 n=4 k=3", "end"),
        (Plant::GuardBefore, "m=5 n=4 k=3", "start"),
        (Plant::Gap, "m=5 n=4 k=3 ldb=262144", "end"),
    ] {
        let mut worker = Worker::start("a_planted_fault_kills_the_worker_at_its_address", &[]);
        let hello: Hello = serde_json::from_str(&worker.line()).unwrap();
        let clean = case("gemm", "m=5 n=4 k=3", place, None);
        let bad = case("gemm", text, place, Some(plant));
        let line = line("gemm", &[clean, bad]);
        worker.send(&serde_json::to_string(&line).unwrap());
        let answer: Answer = serde_json::from_str(&worker.line()).unwrap();
        assert_eq!((answer.id, answer.verdict.as_str()), (100, "pass"));
        assert_eq!(worker.read(), ReadOutcome::Closed);
        assert_eq!(worker.child.wait(Duration::from_secs(20)), Some(Exit::Signal(libc::SIGSEGV)));
        assert_eq!(worker.intent.in_flight(), Some(101));

        // SAFETY: the area holds a record, which the worker left, and stays mapped.
        let record = unsafe { &*worker.intent.fault_area().cast::<FaultRecord>() };
        let raw = record.read().unwrap();
        let problem = Builtin::find("gemm").unwrap().problem();
        let instances: Vec<Instance> =
            line.cases.iter().map(|c| problem.instance(c.case(&problem).unwrap()).unwrap()).collect();
        let layout = Layout::plan(&hello.arena, &instances.iter().collect::<Vec<_>>()).unwrap();
        let fault = Fault {
            address: raw.address,
            access: raw.access,
            hit: layout.locate(1, &instances[1], raw.address.unwrap()),
            ..Fault::default()
        };
        let expected = expected(plant, &instances[1], &layout, 1).unwrap();
        assert!(expected.agrees(&Verdict::Fault(fault.clone()), None), "{plant:?}: {fault:?} is not {expected:?}");
    }
}

#[test]
fn a_worker_ends_with_its_input_and_over_nonsense() {
    if is_alone() {
        be_a_worker("selftest");
    }
    for (said, exit) in [(None, 0), (Some("{\"no\":1}"), 3), (Some("nonsense"), 3)] {
        let mut worker = Worker::start("a_worker_ends_with_its_input_and_over_nonsense", &[]);
        assert_eq!(serde_json::from_str::<Hello>(&worker.line()).unwrap().shrinkfault, 1);
        let problem = Builtin::find("gemm").unwrap().problem();
        let params = WireCase::new(0, 0, &problem, &case("gemm", "m=2", "end", None)).params;
        let ask = AskKnobs { id: 5, ask: "knobs".to_owned(), params, knobs: Default::default() };
        worker.send(&serde_json::to_string(&ask).unwrap());
        assert!(worker.line().contains("guard-before"));
        said.iter().for_each(|line| worker.send(line));
        let Worker { mut child, channel, .. } = worker;
        if said.is_none() {
            drop(channel);
        }
        assert_eq!(child.wait(Duration::from_secs(20)), Some(Exit::Code(exit)), "{said:?}");
    }
}

#[test]
fn a_worker_that_cannot_start_says_why() {
    if is_alone() {
        be_a_worker(&std::env::var("TEST_TARGET").unwrap());
    }
    for (target, broken, word) in [("nccl", "guard", "nccl"), ("selftest", "nonsense", "SHRINKFAULT_BREAK_ORACLE")] {
        let env = [("TEST_TARGET", target), (BREAK_VARIABLE, broken)];
        let mut worker = Worker::start("a_worker_that_cannot_start_says_why", &env);
        let failed: SetupFailed = serde_json::from_str(&worker.line()).unwrap();
        assert!(failed.setup_failed.contains(word), "{}", failed.setup_failed);
        assert_eq!(worker.child.wait(Duration::from_secs(20)), Some(Exit::Code(3)));
    }
}

/// ATLAS and GSL of Debian; where one is not installed, its row is left out and said so.
#[test]
fn known_faults_of_real_libraries_kill_the_worker_in_the_named_operand() {
    if is_alone() {
        be_a_worker(&std::env::var("TEST_TARGET").unwrap());
    }
    let name = "known_faults_of_real_libraries_kill_the_worker_in_the_named_operand";
    for (library, shape, stride, last_good, operand) in [
        ("libcblas.so.3", "m=1 n=5 k=1 dtype=f64", "ldb", (1i64 << 29) - 1, "B"),
        ("libgslcblas.so.0", "m=1 n=3 k=1", "ldc", (1 << 30) - 1, "C"),
    ] {
        let path = format!("/usr/lib/{}-linux-gnu/{library}", std::env::consts::ARCH);
        if !std::path::Path::new(&path).exists() {
            eprintln!("{path} is not installed: not run");
            continue;
        }
        let mut worker = Worker::start(name, &[("TEST_TARGET", &format!("cblas@{path}"))]);
        let hello: Hello = serde_json::from_str(&worker.line()).unwrap();
        println!("{}", hello.description.title);
        let of = |ld: i64| case("gemm", &format!("{shape} {stride}={ld}"), "end", None);
        let line = line("gemm", &[of(last_good), of(last_good + 1)]);
        worker.send(&serde_json::to_string(&line).unwrap());
        let answer: Answer = serde_json::from_str(&worker.line()).unwrap();
        assert_eq!((answer.id, answer.verdict.as_str()), (100, "pass"), "{answer:?}");
        assert_eq!(worker.read(), ReadOutcome::Closed);
        assert_eq!(worker.intent.in_flight(), Some(101));
        // SAFETY: the area holds a record, which the worker left, and stays mapped.
        let raw = unsafe { &*worker.intent.fault_area().cast::<FaultRecord>() }.read().unwrap();
        let problem = Builtin::find("gemm").unwrap().problem();
        let placed: Vec<Instance> =
            line.cases.iter().map(|c| problem.instance(c.case(&problem).unwrap()).unwrap()).collect();
        let layout = Layout::plan(&hello.arena, &placed.iter().collect::<Vec<_>>()).unwrap();
        let hit = layout.locate(1, &placed[1], raw.address.unwrap()).unwrap();
        println!("{hit:?} {:?}", raw.access);
        assert_eq!((hit.operand.as_str(), hit.place), (operand, Place::Far));
    }
}
