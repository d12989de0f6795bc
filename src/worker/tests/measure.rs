//! What a case costs.

use super::{TIB, case, line, run, session};
use crate::device::cpu::CpuArena;
use crate::device::{Arena, PageRange};
use crate::exec::protocol::ArenaSpan;
use crate::problem::{Builtin, gemm};
use crate::target::load;
use crate::worker::Layout;
use crate::worker::oracle::{Oracle, Placed};
use crate::worker::pages;

/// Time that this thread has had on a processor, microseconds: other load does not count.
fn processor_us() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: room for one time.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

#[test]
#[ignore = "a measurement: cargo test --release --lib a_small_case -- --ignored --nocapture"]
fn a_small_case_is_filled_and_compared_in_microseconds() {
    for (text, rounds) in [("m=40 n=40 k=40", 5000), ("m=12 n=12 k=12 lda=1048576 ldb=1048576", 2000)] {
        let builtin = Builtin::find("gemm").unwrap();
        let instance = builtin.problem().instance(case("gemm", text, "end", None)).unwrap();
        let mut arena = CpuArena::reserve(16 * TIB, TIB).unwrap();
        let span = ArenaSpan { base: arena.base(), len: arena.len(), page_bytes: arena.page_bytes() };
        let layout = Layout::plan(&span, &[&instance]).unwrap();
        let set = pages::of_case(&layout, 0, &instance, None, &[], 1 << 30).unwrap();
        arena.map(&set.iter().collect::<Vec<PageRange>>()).unwrap();
        let placed = Placed { layout: &layout, index: 0, instance: &instance, boxes: None, pages: &set };
        let mut oracle = Oracle::new(None);
        let mut spent = [0.0; 3];
        // SAFETY: the pages of the case are mapped, and nobody else uses them.
        unsafe {
            oracle.cover(&set);
            for seed in 0..rounds {
                let begin = processor_us();
                let contents = (builtin.contents)(&instance, seed);
                spent[0] += processor_us() - begin;
                let begin = processor_us();
                oracle.fill(placed, &*contents);
                spent[1] += processor_us() - begin;
                let base: *mut f32 = std::ptr::with_exposed_provenance_mut(layout.base(0, gemm::C, 0) as usize);
                let view = instance.view(gemm::C).unwrap();
                for (j, i) in (0..view.dims[1].extent).flat_map(|j| (0..view.dims[0].extent).map(move |i| (j, i))) {
                    let offset = view.offset_of(0, &[i, j, 0]);
                    *base.offset(offset as isize) = contents.expected(gemm::C, 0, &[i, j, 0]) as f32;
                }
                let begin = processor_us();
                let damage = oracle.check(placed, &*contents);
                spent[2] += processor_us() - begin;
                assert_eq!(damage, None);
            }
        }
        let each = spent.map(|s| s / rounds as f64);
        println!(
            "{text}: {} ranges, values {:.1} us, fill {:.1} us, check {:.1} us",
            set.len(),
            each[0],
            each[1],
            each[2]
        );
    }
}

#[test]
#[ignore = "a measurement: cargo test --release --lib a_session -- --ignored --nocapture"]
fn a_session_runs_thousands_of_cases_a_second() {
    let problem = Builtin::find("gemm").unwrap().problem();
    let library = std::env::var("SHRINKFAULT_TEST_LIB").unwrap_or("/usr/lib/x86_64-linux-gnu/libgslcblas.so.0".into());
    let spec = format!("cblas@{library}").parse().unwrap();
    let mut session = session("gemm", load::load(&spec, &problem, None).unwrap(), None);
    let begin = processor_us();
    let title = session.target().describe().title;
    println!("{title}: described in {:.1} us", processor_us() - begin);
    for (text, place) in [("m=40 n=40 k=40", "end"), ("m=40 n=40 k=40", "start"), ("m=5 n=4 k=3 ldb=1048576", "end")] {
        let cases = vec![case("gemm", text, place, None); 64];
        let line = line("gemm", &cases);
        run(&mut session, &line);
        let begin = processor_us();
        for _ in 0..20 {
            assert!(run(&mut session, &line).iter().all(|a| a.verdict == "pass"));
        }
        println!("{text} {place}: {:.1} us a case", (processor_us() - begin) / 1280.0);
    }
}
