//! Memory of an NVIDIA GPU: filled and compared by kernels of our own, with values that the host computes.

use super::staging::Staging;
use super::{Ground, Loss};
use crate::device::cuda::{Buffer, CudaArena, CudaError, Function, Gpu, HostBuffer, Launch, kernels};
use crate::device::{Arena, MemoryError, PageRange};
use crate::evidence::GpuFault;
use crate::evidence::kernel_log::{self, KernelLog};
use crate::exec::protocol::ArenaSpan;
use crate::exec::verdict::{Wrong, WrongKind};
use crate::problem::Contents;
use crate::worker::anchor::host;
use crate::worker::oracle::{BrokenOracle, Damage, Placed, stray_damage, writes};
use crate::worker::pages::PageSet;
use std::io;
use std::rc::Rc;
use std::time::Duration;

const THREADS: u32 = 256;
/// Blocks of one region or range.
const MOST_BLOCKS: u64 = 2048;
/// Ranges of one launch: a grid has no more rows.
const MOST_RANGES: usize = 32_768;
/// How long to wait for the driver's line in the kernel's log, once the status has come.
const LOG_PATIENCE: Duration = Duration::from_millis(200);
const FOUND_BYTES: usize = 8 * 8;
const NONE: u64 = u64::MAX;

/// The arena of a GPU and what compares its bytes.
pub struct CudaGround {
    gpu: Rc<Gpu>,
    arena: CudaArena,
    broken: Option<BrokenOracle>,
    kernels: Kernels,
    staging: Staging,
    staged: HostBuffer,
    /// Descriptions and values of the case, on the card.
    values: Buffer,
    /// Mapped ranges, on the card, as long as they are those of `covered`.
    ranges: Buffer,
    covered: Option<PageSet>,
    found: Buffer,
    log: Result<KernelLog, String>,
}

struct Kernels {
    fill: Function,
    compare: Function,
    restore: Function,
    cover: Function,
    check_canary: Function,
}

/// What one comparison counted; see `Found` in oracle.cu.
#[derive(Debug)]
struct Found {
    wrong: u64,
    first: u64,
    stray: u64,
    stray_low: u64,
    shared: u64,
    shared_low: u64,
    canary: u64,
    canary_low: u64,
}

impl Found {
    fn read(bytes: &[u8; FOUND_BYTES]) -> Found {
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| bytes[8 * i + b]));
        Found {
            wrong: word(0),
            first: word(1),
            stray: word(2),
            stray_low: word(3),
            shared: word(4),
            shared_low: word(5),
            canary: word(6),
            canary_low: word(7),
        }
    }

    /// What a comparison starts with: counts of 0, lowest values as high as can be.
    fn start() -> [u8; FOUND_BYTES] {
        std::array::from_fn(|i| if i / 8 % 2 == 0 { 0 } else { 0xff })
    }
}

impl CudaGround {
    /// Reserves an arena on a GPU and compiles what fills and compares.
    ///
    /// # Errors
    /// One sentence.
    pub fn open(
        gpu: &Rc<Gpu>,
        arena_bytes: u64,
        least: u64,
        broken: Option<BrokenOracle>,
    ) -> Result<CudaGround, String> {
        let arena = CudaArena::reserve(gpu, arena_bytes, least)?;
        let module = kernels::ORACLE.load(gpu)?;
        let text = |e: CudaError| e.to_string();
        let function = |name| module.function(name).map_err(text);
        let kernels = Kernels {
            fill: function("fill")?,
            compare: function("compare")?,
            restore: function("restore")?,
            cover: function("cover")?,
            check_canary: function("check_canary")?,
        };
        Ok(CudaGround {
            gpu: Rc::clone(gpu),
            arena,
            broken,
            kernels,
            staging: Staging::default(),
            staged: gpu.host_buffer(1 << 20).map_err(text)?,
            values: gpu.buffer(1 << 20).map_err(text)?,
            ranges: gpu.buffer(1 << 16).map_err(text)?,
            covered: None,
            found: gpu.buffer(FOUND_BYTES as u64).map_err(text)?,
            log: KernelLog::open(),
        })
    }

    /// Whether this process may read which page a fault was on.
    pub fn can_read_log(&self) -> Result<(), &str> {
        self.log.as_ref().map(drop).map_err(String::as_str)
    }

    fn blocks(items: u64) -> u32 {
        items.div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS) as u32
    }

    /// One launch per region.
    ///
    /// # Safety
    /// The regions on the card are those of the case, and their elements are mapped.
    unsafe fn over_regions(&self, kernel: Function, more: &[&[u8]]) -> Result<(), CudaError> {
        if self.staging.regions.is_empty() {
            return Ok(());
        }
        let launch = Launch::flat(Self::blocks(self.staging.most), self.staging.regions.len() as u32, THREADS);
        let regions = self.values.address.to_le_bytes();
        let args: Vec<&[u8]> = std::iter::once(&regions[..]).chain(more.iter().copied()).collect();
        // SAFETY: passed on; the arguments are those of the kernels over regions.
        unsafe { kernel.launch(launch, &args) }
    }

    /// One launch over whole mapped pages.
    ///
    /// # Safety
    /// The pages are mapped.
    unsafe fn over_pages(&mut self, kernel: Function, pages: &PageSet, more: &[&[u8]]) -> Result<(), CudaError> {
        let ranges: Vec<PageRange> = pages.iter().collect();
        for ranges in ranges.chunks(MOST_RANGES) {
            let bytes: Vec<u8> = ranges.iter().flat_map(|r| [r.start, r.bytes]).flat_map(u64::to_le_bytes).collect();
            let whole = ranges.len() == pages.len();
            if !(whole && self.covered.as_ref() == Some(pages)) {
                self.gpu.wait()?;
                if self.ranges.bytes < bytes.len() as u64 {
                    self.ranges = self.gpu.buffer((bytes.len() as u64).next_power_of_two())?;
                }
                // SAFETY: the buffer has room. The copy is waited for, since the list is gone afterwards.
                unsafe { self.gpu.upload(self.ranges.address, &bytes)? };
                self.gpu.wait()?;
                self.covered = whole.then(|| pages.clone());
            }
            let longest = ranges.iter().map(|r| r.bytes).max().unwrap_or(0);
            let launch = Launch::flat(Self::blocks(longest / 16), ranges.len() as u32, THREADS);
            let list = self.ranges.address.to_le_bytes();
            let args: Vec<&[u8]> = std::iter::once(&list[..]).chain(more.iter().copied()).collect();
            // SAFETY: passed on; the arguments are those of the kernels over pages.
            unsafe { kernel.launch(launch, &args)? };
        }
        Ok(())
    }

    /// Room for the case on the host and on the card.
    fn reserve(&mut self) -> Result<(), CudaError> {
        let bytes = self.staging.total_bytes();
        if (self.staged.len() as u64) < bytes {
            self.staged = self.gpu.host_buffer(bytes.next_power_of_two())?;
        }
        if self.values.bytes < bytes {
            self.values = self.gpu.buffer(bytes.next_power_of_two())?;
        }
        Ok(())
    }

    /// Address of the values on the card.
    fn values_start(&self) -> u64 {
        self.values.address + self.staging.total_bytes() - self.staging.bytes
    }

    /// # Safety
    /// As for [`Ground::check`].
    unsafe fn compare(&mut self, placed: Placed<'_>) -> Result<Found, CudaError> {
        let values = self.values_start().to_le_bytes();
        let found = self.found.address.to_le_bytes();
        let lenient = u32::from(self.broken == Some(BrokenOracle::Sentinel)).to_le_bytes();
        let mut counted = Found::start();
        // SAFETY: the regions are those of the fill, and their pages are mapped still; `found` has room.
        unsafe {
            self.gpu.upload(self.found.address, &counted)?;
            self.over_regions(self.kernels.compare, &[&values, &found, &lenient])?;
            self.over_regions(self.kernels.restore, &[])?;
            if self.broken != Some(BrokenOracle::Canary) {
                self.over_pages(self.kernels.check_canary, placed.pages, &[&found])?;
            }
            self.gpu.download(&mut counted, self.found.address)?;
        }
        Ok(Found::read(&counted))
    }

    fn damage(&self, placed: Placed<'_>, found: &Found) -> Option<Damage> {
        let lost = (found.wrong > 0).then(|| self.wrong(placed, found)).flatten();
        // Wrong outputs change the inputs that lie among them, too.
        let shared = if found.wrong == 0 { (found.shared, found.shared_low) } else { (0, NONE) };
        let counts = [(found.stray, found.stray_low), shared, (found.canary, found.canary_low)];
        let bytes: u64 = counts.iter().map(|c| c.0).sum();
        let lowest = counts.iter().map(|c| c.1).min().unwrap_or(NONE);
        match (bytes > 0, lost) {
            (true, lost) => Some(stray_damage(placed, lowest, bytes, lost)),
            (false, Some(wrong)) => Some(Damage { wrong, access: None, detail: None }),
            (false, None) => None,
        }
    }

    fn wrong(&self, placed: Placed<'_>, found: &Found) -> Option<Wrong> {
        let (region, first) = self.staging.element(found.first >> 1)?;
        let kind = if found.first & 1 == 1 { WrongKind::Unwritten } else { WrongKind::Value };
        Some(Wrong {
            kind,
            operand: placed.instance.problem.operands[region.operand].name.clone(),
            copy: region.copy,
            first,
            count: found.wrong,
            compared: self.staging.compared,
            hit: None,
        })
    }

    /// What the device says of a failure, and what the kernel's log adds.
    fn loss(&mut self, e: CudaError) -> Loss {
        if !e.is_sticky() {
            return Loss::Broken(e.to_string());
        }
        let mut fault = GpuFault {
            status: e.to_string(),
            is_memory: e.is_memory(),
            address: None,
            grain: 1,
            access: None,
            channel: "status of the driver".to_owned(),
        };
        if let (true, Ok(log)) = (e.is_illegal_address(), &mut self.log)
            && let Some(said) = log.page_fault(std::process::id(), LOG_PATIENCE)
        {
            fault.address = Some(said.page);
            fault.grain = kernel_log::PAGE_BYTES;
            fault.access = said.access;
            fault.channel.push_str(", page from the kernel's log (Xid 31)");
        }
        Loss::Fault(fault)
    }
}

impl Ground for CudaGround {
    fn arena(&self) -> ArenaSpan {
        ArenaSpan { base: self.arena.base(), len: self.arena.len(), page_bytes: self.arena.page_bytes() }
    }

    fn unmap(&mut self, gone: &PageSet) -> Result<(), MemoryError> {
        self.arena.unmap(&gone.iter().collect::<Vec<_>>())?;
        let renewed: Vec<(u64, u64)> = self.arena.take_renewed().iter().map(|r| (r.start, r.start + r.bytes)).collect();
        if renewed.is_empty() {
            return Ok(());
        }
        let renewed = PageSet::of_bytes(renewed, 1);
        self.cover(&renewed)
    }

    fn map(&mut self, new: &PageSet) -> Result<(), MemoryError> {
        self.arena.map(&new.iter().collect::<Vec<_>>())?;
        self.cover(new)
    }

    unsafe fn fill(&mut self, placed: Placed<'_>, contents: &dyn Contents) -> Result<(), String> {
        let text = |e: CudaError| e.to_string();
        self.staging.plan(placed);
        self.reserve().map_err(text)?;
        let bytes = self.staging.total_bytes() as usize;
        let written = |operand| writes(placed, host(placed.instance, operand));
        self.staging.write(contents, written, &mut self.staged.bytes_mut()[..bytes]);
        let values = self.values_start().to_le_bytes();
        // SAFETY: the buffers have room, and `staged` stays as it is until the run has been waited for; the rest is passed on.
        unsafe {
            self.gpu.upload(self.values.address, &self.staged.bytes()[..bytes]).map_err(text)?;
            self.over_regions(self.kernels.fill, &[&values]).map_err(text)?;
        }
        // What goes wrong from here on is the target's.
        self.gpu.wait().map_err(text)
    }

    fn settle(&mut self) -> Result<(), Loss> {
        self.gpu.wait().map_err(|e| self.loss(e))
    }

    unsafe fn clear(&mut self, placed: Placed<'_>) -> Result<(), String> {
        // SAFETY: passed on.
        unsafe { self.compare(placed) }.map(drop).map_err(|e| e.to_string())
    }

    unsafe fn check(&mut self, placed: Placed<'_>, _contents: &dyn Contents) -> Result<Option<Damage>, Loss> {
        // SAFETY: passed on.
        let found = unsafe { self.compare(placed) }.map_err(|e| self.loss(e))?;
        Ok(self.damage(placed, &found))
    }
}

impl CudaGround {
    fn cover(&mut self, pages: &PageSet) -> Result<(), MemoryError> {
        let kernel = self.kernels.cover;
        // SAFETY: the pages are mapped.
        let covered = unsafe { self.over_pages(kernel, pages, &[]) }.and_then(|()| self.gpu.wait());
        covered.map_err(|e| {
            let first = pages.iter().next().unwrap_or(PageRange { start: 0, bytes: 0 });
            MemoryError::Map { start: first.start, bytes: pages.bytes(), source: io::Error::other(e) }
        })
    }
}
