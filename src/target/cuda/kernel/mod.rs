//! `kernel:FILE`: a CUDA C++ kernel that runs a built-in problem, described by a TOML file, without any host code.
//! docs/cuda.md says how to write one.

mod args;
mod file;

pub use file::KernelFile;

use crate::device::cuda::{Buffer, CudaError, Function, Gpu, Launch, nvrtc};
use crate::manifest;
use crate::problem::expr::Expr;
use crate::problem::{Instance, Knobs, Problem, Value};
use crate::target::{Bases, Caps, Description, Footprint, Launched, Target, TargetSpec, whole_or_skipped};
use args::Arg;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Family of these targets.
pub const FAMILY: &str = "kernel";
/// Dynamic shared memory that every launch may have, bytes.
const FREE_SHARED: u32 = 48 << 10;
/// Largest grid, by dimension, and most threads of a block, in CUDA.
const GRID: [i128; 3] = [i32::MAX as i128, 65_535, 65_535];
const BLOCK: i128 = 1024;

/// A kernel that was read and checked against a problem.
struct Parsed {
    file: KernelFile,
    args: Vec<Arg>,
    grid: Vec<Expr>,
    block: Vec<Expr>,
    shared: Option<Expr>,
    launches: Option<Expr>,
}

/// A compiled kernel.
pub struct Kernel {
    gpu: Rc<Gpu>,
    problem: Problem,
    parsed: Parsed,
    source: String,
    /// By the values of the knobs.
    built: BTreeMap<String, Function>,
    /// Addresses of all copies of operands, where the kernel wants them as a table.
    tables: Vec<Buffer>,
}

/// The spec of a kernel as findings keep it; `typed` is `kernel:PATH`.
///
/// # Errors
/// One sentence, where there is no such file.
pub fn named(typed: &TargetSpec) -> Result<TargetSpec, String> {
    if typed.library.is_some() {
        return Ok(typed.clone());
    }
    let path = Path::new(&typed.model);
    if typed.model.is_empty() || !path.is_file() {
        return Err(format!("'{typed}' names no file; write kernel:PATH with the TOML file that describes the kernel"));
    }
    let stem = path.file_stem().map_or_else(|| "kernel".to_owned(), |s| s.to_string_lossy().into_owned());
    Ok(TargetSpec { model: stem, ..typed.clone() }.with_library(Some(manifest::shown(path))))
}

/// Whether a spec names a kernel that runs the problem; compiles nothing.
///
/// # Errors
/// One sentence.
pub fn check(spec: &TargetSpec, problem: &Problem) -> Result<(), String> {
    parse(spec, problem).map(drop)
}

fn parse(spec: &TargetSpec, problem: &Problem) -> Result<Parsed, String> {
    if !spec.settings.is_empty() {
        return Err(format!("'{spec}': a kernel takes no settings; give it knobs in its file"));
    }
    let shown = spec.library.as_deref().ok_or_else(|| format!("'{spec}' names no file; write kernel:PATH"))?;
    let path = manifest::find(shown, None).ok_or_else(|| format!("the kernel's file {shown} was not found"))?;
    let file = KernelFile::read(&path)?;
    let said = |e: String| format!("{}: {e}", path.display());
    if file.problem != problem.name {
        return Err(said(format!("it runs {}, not {}", file.problem, problem.name)));
    }
    problem.narrowed(&file.limits()).map_err(said)?;
    let expr = |text: &String| Expr::parse(text, problem).map_err(|e| said(format!("'{text}': {e}")));
    let list = |texts: &[String]| texts.iter().map(expr).collect::<Result<Vec<_>, _>>();
    let (grid, block) = (list(&file.kernel.grid)?, list(&file.kernel.block)?);
    if !(1..=3).contains(&grid.len()) || !(1..=3).contains(&block.len()) {
        return Err(said("grid and block have one to three expressions".to_owned()));
    }
    Ok(Parsed {
        args: file.kernel.args.iter().map(|a| Arg::parse(a, problem).map_err(said)).collect::<Result<_, _>>()?,
        grid,
        block,
        shared: file.kernel.shared.as_ref().map(expr).transpose()?,
        launches: file.kernel.launches.as_ref().map(expr).transpose()?,
        file,
    })
}

impl Kernel {
    /// Reads, checks and compiles a kernel with the first value of every knob.
    ///
    /// # Errors
    /// One sentence: what is wrong with its file, or the compiler's first error.
    pub fn load(spec: &TargetSpec, problem: &Problem, gpu: &Rc<Gpu>) -> Result<Kernel, String> {
        let parsed = parse(spec, problem)?;
        let path = parsed.file.source_path();
        let source = std::fs::read_to_string(&path)
            .map_err(|e| format!("failed to read the kernel's source {}: {e}", path.display()))?;
        let (built, tables) = (BTreeMap::new(), vec![]);
        let mut kernel = Kernel { gpu: Rc::clone(gpu), problem: problem.clone(), parsed, source, built, tables };
        kernel.function(&Knobs::new())?;
        Ok(kernel)
    }

    /// The kernel compiled with a case's knobs: each is a macro.
    fn function(&mut self, knobs: &Knobs) -> Result<Function, String> {
        let mut options = self.parsed.file.kernel.options.clone();
        for (name, values) in &self.parsed.file.knobs {
            let Some(value) = knobs.get(name).or(values.first()) else { continue };
            if !values.contains(value) {
                return Err(format!("{name}={value} is no value of this knob"));
            }
            options.push(format!("-D{name}={value}"));
        }
        let key = options.join(" ");
        if let Some(function) = self.built.get(&key) {
            return Ok(*function);
        }
        let path = self.parsed.file.source_path();
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let image = nvrtc::compile(&name, &self.source, &nvrtc::architecture(self.gpu.capability), &options)?;
        let module = self.gpu.module(&image).map_err(|e| format!("{name}: {e}"))?;
        let entry = &self.parsed.file.kernel.entry;
        let function = module
            .function(entry)
            .map_err(|_| format!("{name} has no kernel '{entry}'; declare it extern \"C\" __global__"))?;
        self.built.insert(key, function);
        Ok(function)
    }

    /// Grid, block and shared memory of one launch; the reason why there is none.
    fn shape(&self, instance: &Instance, rank: i64) -> Result<Launch, String> {
        let value = |e: &Expr| {
            self.problem.eval(e, &instance.case.params.0, rank).map_err(|why| format!("'{}': {why}", e.text()))
        };
        let three = |exprs: &[Expr], what: &str, most: [i128; 3]| {
            let mut out = [1; 3];
            for (i, e) in exprs.iter().enumerate() {
                let v = value(e)?;
                if !(1..=most[i]).contains(&v) {
                    return Err(format!("{what} dimension {i} is {v}; CUDA allows 1 to {}", most[i]));
                }
                out[i] = v as u32;
            }
            Ok(out)
        };
        let block = three(&self.parsed.block, "block", [BLOCK, BLOCK, 64])?;
        let shared = self.parsed.shared.as_ref().map_or(Ok(0), value)?;
        let shared_bytes = u32::try_from(shared).map_err(|_| format!("{shared} bytes of shared memory are no size"))?;
        Ok(Launch { grid: three(&self.parsed.grid, "grid", GRID)?, block, shared_bytes })
    }

    /// # Safety
    /// As for [`Target::launch`].
    unsafe fn run(&mut self, instance: &Instance, bases: &dyn Bases) -> Result<(), String> {
        let function = self.function(&instance.case.knobs)?;
        let launches = match &self.parsed.launches {
            None => 1,
            Some(e) => {
                self.problem.eval(e, &instance.case.params.0, 0).map_err(|why| format!("'{}': {why}", e.text()))?
            }
        };
        self.tables.clear();
        let text = |e: CudaError| e.to_string();
        for rank in 0..launches as i64 {
            let launch = self.shape(instance, rank)?;
            if launch.shared_bytes > FREE_SHARED {
                function.allow_shared(launch.shared_bytes).map_err(text)?;
            }
            let mut bytes = Vec::with_capacity(self.parsed.args.len());
            for arg in &self.parsed.args {
                bytes.push(arg.bytes(instance, rank, bases, |table| table_of(&self.gpu, &mut self.tables, table))?);
            }
            let args: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            // SAFETY: the author's file says that these are the kernel's arguments; what it touches is the question.
            unsafe { function.launch(launch, &args) }.map_err(text)?;
        }
        Ok(())
    }
}

/// Puts a table of addresses on the card.
fn table_of(gpu: &Gpu, tables: &mut Vec<Buffer>, addresses: &[u64]) -> Result<u64, String> {
    let bytes: Vec<u8> = addresses.iter().flat_map(|a| a.to_le_bytes()).collect();
    let text = |e: CudaError| e.to_string();
    let buffer = gpu.buffer(bytes.len() as u64).map_err(text)?;
    // SAFETY: the buffer has room; pageable memory is copied before the call returns, and the wait makes sure.
    unsafe { gpu.upload(buffer.address, &bytes) }.and_then(|()| gpu.wait()).map_err(text)?;
    let address = buffer.address;
    tables.push(buffer);
    Ok(address)
}

impl Target for Kernel {
    fn describe(&self) -> Description {
        let (file, path) = (&self.parsed.file, self.parsed.file.source_path());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Description {
            title: format!("kernel {} of {name} on {}", file.kernel.entry, self.gpu.name),
            limits: file.limits(),
            ..Description::default()
        }
    }

    fn identity(&self) -> Vec<(String, String)> {
        let mut all = crate::target::cuda::card_facts(&self.gpu);
        let digest = |path: &PathBuf| crate::target::cuda::sha256_of(path);
        all.push(("source".to_owned(), digest(&self.parsed.file.source_path())));
        all.push(("description".to_owned(), digest(&self.parsed.file.path)));
        if let Ok(compiler) = nvrtc::Compiler::open() {
            let (major, minor) = compiler.version;
            all.push(("nvrtc".to_owned(), format!("{major}.{minor}, {}", compiler.path.display())));
        }
        all
    }

    fn knobs(&self, _instance: &Instance) -> BTreeMap<String, Vec<Value>> {
        self.parsed.file.knobs.clone()
    }

    fn footprint(&self, instance: &Instance, caps: &Caps) -> Footprint {
        match self.shape(instance, 0).and_then(|_| args::fit(&self.parsed.args, instance)) {
            Err(why) => Footprint::Refused(why),
            Ok(()) => whole_or_skipped(instance, caps),
        }
    }

    unsafe fn launch(&mut self, instance: &Instance, _footprint: &Footprint, bases: &dyn Bases) -> Launched {
        // SAFETY: passed on.
        let outcome = unsafe { self.run(instance, bases) };
        let kernel = Some(self.parsed.file.kernel.entry.clone());
        Launched { kernel, resolved: instance.case.knobs.clone(), refused: outcome.err(), failed: None }
    }
}
