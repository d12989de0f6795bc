//! Plain memory for tests: every copy of an operand ends at a guard, a wrapped offset lands in another one.

use super::load;
use crate::problem::dtype::LARGEST_ELEMENT;
use crate::problem::{Builtin, Case, Contents, Instance, Knobs, Placement, Problem, Value};
use crate::target::{Bases, Caps, Footprint, IndexBox, Launched, Target};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Unreadable bytes on both sides of an operand: a 32-bit wrap of 4-byte elements stays inside.
const GUARD: usize = 16 << 30;
/// Byte of everything that is no element: NaN in every type.
const CANARY: u8 = 0xff;
const SEED: u64 = 11;

/// Every element of every operand, whatever the work.
pub const NO_CAPS: Caps = Caps { work: u64::MAX, memory: u64::MAX };

/// A case from `name=value` words; what is not named takes its default.
pub fn instance(problem: &str, words: &str) -> Instance {
    let (knobs, params): (Vec<&str>, Vec<&str>) = words.split_whitespace().partition(|w| w.starts_with("only-rank"));
    let read = |words: Vec<&str>| -> BTreeMap<String, Value> {
        words.iter().filter_map(|w| w.split_once('=')).map(|(n, v)| (n.to_owned(), Value::from_word(v))).collect()
    };
    let problem = Builtin::find(problem).unwrap().problem();
    let params = problem.complete(&read(params)).unwrap();
    let knobs: Knobs = read(knobs);
    problem.instance(Case { params, knobs, placement: Placement::END }).unwrap()
}

/// gemm as the models have it.
pub fn modelled_gemm() -> Arc<Problem> {
    Arc::new(Builtin::find("gemm").unwrap().problem().narrowed(&super::gemm::limits()).unwrap())
}

pub fn target(model: &str, instance: &Instance) -> Box<dyn Target> {
    load(&format!("sim:{model}").parse().unwrap(), &instance.problem).unwrap()
}

struct Region {
    start: *mut u8,
    pages: usize,
    base: *mut u8,
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range that `Region::new` mapped, which nothing borrows any more.
        unsafe { libc::munmap(self.start.cast(), 2 * GUARD + self.pages) };
    }
}

/// The operands of a case in memory of their own.
struct Stage<'a> {
    instance: &'a Instance,
    contents: Box<dyn Contents>,
    regions: BTreeMap<(usize, u32), Region>,
}

impl Bases for Stage<'_> {
    fn base(&self, operand: usize, copy: u32) -> *mut u8 {
        let owner = self.instance.problem.operands[operand].alias.unwrap_or(operand);
        self.regions.get(&(owner, copy)).map_or(std::ptr::null_mut(), |r| r.base)
    }
}

impl<'a> Stage<'a> {
    fn new(instance: &'a Instance) -> Stage<'a> {
        Stage::with_slack(instance, 0)
    }

    /// With so many readable bytes before and past every operand.
    fn with_slack(instance: &'a Instance, slack: usize) -> Stage<'a> {
        let contents = (Builtin::find(&instance.problem.name).unwrap().contents)(instance, SEED);
        let mut stage = Stage { instance, contents, regions: BTreeMap::new() };
        for view in instance.views.iter().flatten().filter(|v| v.alias.is_none()) {
            for copy in 0..view.copies() {
                let bytes = ((view.highest(copy) + 1) * view.element_bytes) as usize;
                stage.regions.insert((view.operand, copy), Region::new(bytes, slack));
            }
        }
        stage.each(&whole(instance), |stage, operand, copy, index, place| {
            let view = stage.instance.view(operand).unwrap();
            if view.defined {
                let mut bytes = [0; LARGEST_ELEMENT];
                view.dtype.unwrap().encode(stage.contents.input(operand, copy, index), &mut bytes);
                place.copy_from_slice(&bytes[..place.len()]);
            }
        });
        stage
    }

    /// Calls `f` with the bytes of every element of the boxes.
    fn each(&self, boxes: &[IndexBox], mut f: impl FnMut(&Self, usize, u32, &[i64], &mut [u8])) {
        for b in boxes {
            let view = self.instance.view(b.operand).unwrap();
            let mut index: Vec<i64> = b.ranges.iter().map(|r| r.0).collect();
            'elements: loop {
                let bytes = view.element_bytes as usize;
                let at = view.offset_of(b.copy, &index) as isize * bytes as isize;
                // SAFETY: an element of the view, which lies in a region of this stage.
                let place = unsafe { std::slice::from_raw_parts_mut(self.base(b.operand, b.copy).offset(at), bytes) };
                f(self, b.operand, b.copy, &index, place);
                for (at, range) in index.iter_mut().zip(&b.ranges) {
                    *at += 1;
                    if *at < range.1 {
                        continue 'elements;
                    }
                    *at = range.0;
                }
                break;
            }
        }
    }

    fn run(&self, model: &str, footprint: &Footprint) -> Launched {
        self.launch(&mut *target(model, self.instance), footprint)
    }

    fn launch(&self, target: &mut dyn Target, footprint: &Footprint) -> Launched {
        // SAFETY: every element of every operand is mapped.
        unsafe { target.launch(self.instance, footprint, self) }
    }

    /// Elements of written operands inside the boxes that do not hold what a correct run leaves.
    fn wrong(&self, boxes: &[IndexBox]) -> Vec<(usize, u32, Vec<i64>)> {
        let mut wrong = vec![];
        self.each(boxes, |stage, operand, copy, index, place| {
            let view = stage.instance.view(operand).unwrap();
            if view.access.writes()
                && view.dtype.unwrap().decode(place) != stage.contents.expected(operand, copy, index)
            {
                wrong.push((operand, copy, index.to_vec()));
            }
        });
        wrong
    }

    /// Bytes of all regions with the elements inside the written boxes blanked; for small cases.
    fn surroundings(&self, boxes: &[IndexBox]) -> Vec<Vec<u8>> {
        let snapshot = |r: &Region| {
            // SAFETY: the mapped pages of the region.
            unsafe { std::slice::from_raw_parts(r.start.add(GUARD), r.pages) }.to_vec()
        };
        let mut all: BTreeMap<(usize, u32), Vec<u8>> = self.regions.iter().map(|(k, r)| (*k, snapshot(r))).collect();
        self.each(boxes, |stage, operand, copy, _, place| {
            if stage.instance.view(operand).unwrap().access.writes() {
                let region = &stage.regions[&(operand, copy)];
                let at = place.as_ptr() as usize - region.start as usize - GUARD;
                all.get_mut(&(operand, copy)).unwrap()[at..at + place.len()].fill(0);
            }
        });
        all.into_values().collect()
    }
}

impl Region {
    fn new(bytes: usize, slack: usize) -> Region {
        let pages = (bytes + 2 * slack).next_multiple_of(4096);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a fresh reservation, of which the middle is made accessible.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 2 * GUARD + pages, libc::PROT_NONE, flags, -1, 0).cast::<u8>();
            assert_ne!(start.cast(), libc::MAP_FAILED);
            let middle = start.add(GUARD);
            assert_eq!(libc::mprotect(middle.cast(), pages, libc::PROT_READ | libc::PROT_WRITE), 0);
            if pages <= 1 << 24 {
                middle.write_bytes(CANARY, pages);
            }
            Region { start, pages, base: middle.add(pages - slack - bytes) }
        }
    }
}

/// Boxes of every element of every operand.
fn whole(instance: &Instance) -> Vec<IndexBox> {
    let boxes = |v: &crate::problem::View| {
        let ranges: Vec<(i64, i64)> = v.dims.iter().map(|d| (0, d.extent)).collect();
        let operand = v.operand;
        (0..v.copies()).map(move |copy| IndexBox { operand, copy, ranges: ranges.clone() }).collect::<Vec<_>>()
    };
    instance.views.iter().flatten().flat_map(boxes).collect()
}

/// Runs a case in this process and says what is wrong with the elements of its footprint.
pub fn wrong(model: &str, instance: &Instance, caps: &Caps) -> Vec<(usize, u32, Vec<i64>)> {
    let stage = Stage::new(instance);
    let footprint = target(model, instance).footprint(instance, caps);
    let boxes = match &footprint {
        Footprint::Whole => whole(instance),
        Footprint::Part { boxes, .. } => boxes.clone(),
        other => panic!("{other:?}"),
    };
    let small = stage.regions.values().map(|r| r.pages).sum::<usize>() < 1 << 22;
    let before = if small { stage.surroundings(&boxes) } else { vec![] };
    let launched = stage.run(model, &footprint);
    assert!(launched.refused.is_none() && launched.kernel.is_some());
    if small {
        assert!(before == stage.surroundings(&boxes), "{model} changed bytes outside its elements");
    }
    stage.wrong(&boxes)
}

/// Runs a small case of a library in this process: which elements are wrong, and whether other bytes changed. What it reads
/// beside its operands is no fault here: some libraries do.
pub fn wrong_on(target: &mut dyn Target, instance: &Instance) -> (Vec<(usize, u32, Vec<i64>)>, bool) {
    let stage = Stage::with_slack(instance, 1 << 16);
    let boxes = whole(instance);
    let before = stage.surroundings(&boxes);
    let launched = stage.launch(target, &Footprint::Whole);
    assert_eq!(launched.refused, None);
    (stage.wrong(&boxes), before != stage.surroundings(&boxes))
}

/// How a launch in a child ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Right,
    Wrong,
    Signal(i32),
    Hang,
}

/// Runs a case in a forked child, which may be lost.
pub fn end(model: &str, instance: &Instance) -> End {
    let stage = Stage::new(instance);
    let footprint = target(model, instance).footprint(instance, &NO_CAPS);
    let boxes = whole(instance);
    // SAFETY: the child runs the kernel on the stage and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: plain system calls of the child.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &limit) };
        stage.run(model, &footprint);
        let code = i32::from(!stage.wrong(&boxes).is_empty());
        // SAFETY: as above; no destructor of the parent's state runs.
        unsafe { libc::_exit(code) };
    }
    assert!(child > 0);
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: waits for, and at last kills, the child forked above.
    unsafe {
        while libc::waitpid(child, &mut status, libc::WNOHANG) == 0 {
            if start.elapsed() > Duration::from_secs(8) {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &mut status, 0);
                return End::Hang;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    match (libc::WIFSIGNALED(status), libc::WEXITSTATUS(status)) {
        (true, _) => End::Signal(libc::WTERMSIG(status)),
        (false, 0) => End::Right,
        (false, _) => End::Wrong,
    }
}
