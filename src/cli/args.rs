//! The command line.

use super::help::*;
use crate::problem::{BUILTINS, Builtin, Narrow, Placement, Value};
use crate::search::Shard;
use crate::target::TargetSpec;
use crate::target::cblas::Routine;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Finds the shape at which a GEMM or a collective touches memory it does not own, and shrinks it to the boundary.
#[derive(Debug, Parser)]
#[command(name = "shrinkfault", version, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Hunt shapes of D = alpha op(A) op(B) + beta C that fault, hang or come out wrong
    #[command(after_help = GEMM_HELP)]
    Gemm(Hunt),
    /// Hunt shapes of an all-gather that fault, hang or come out wrong
    #[command(after_help = ALLGATHER_HELP)]
    Allgather {
        /// Largest number of ranks tried
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(i64).range(1..=4096))]
        ranks: i64,
        #[command(flatten)]
        hunt: Hunt,
    },
    /// Hunt shapes of another routine of BLAS: gemv, symm, trsm, axpy ...
    #[command(after_help = BLAS_HELP)]
    Blas {
        #[arg(value_parser = routines())]
        routine: String,
        #[command(flatten)]
        hunt: Hunt,
    },
    /// Hunt shapes of a program of your own, described by a manifest
    #[command(after_help = FUZZ_HELP)]
    Fuzz {
        /// The manifest: a TOML file that describes the problem and names the program (docs/manifest.md)
        manifest: PathBuf,
        #[command(flatten)]
        hunt: Hunt,
    },
    /// Run one case once, with all detail
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// Shrink one case to its boundary
    #[command(after_help = RUN_HELP)]
    Shrink(ShrinkArgs),
    /// Copy a finding into regressions/
    #[command(after_help = KEEP_HELP)]
    Keep {
        /// A finding: its file, or its name in --out
        finding: String,
        /// Folder that a finding is looked for in by name
        #[arg(long, value_name = "DIR", default_value = "shrinkfault-out")]
        out: PathBuf,
        /// Folder of kept findings
        #[arg(long, value_name = "DIR", default_value = "regressions")]
        regressions: PathBuf,
    },
    /// Run committed findings again and say which still fail, moved, changed or are fixed
    #[command(after_help = REGRESS_HELP)]
    Regress(RegressArgs),
    /// Say which shapes of a list lie past a finding's line; runs nothing
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Say how the hunt of a folder stands, from another terminal; disturbs nothing
    #[command(after_help = STATUS_HELP)]
    Status {
        /// The folder that the hunt's --out names
        #[arg(default_value = "shrinkfault-out")]
        out: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List, minimise or merge folders of seed cases
    #[command(after_help = CORPUS_HELP)]
    Corpus {
        #[command(subcommand)]
        command: CorpusCommand,
    },
    /// List the targets of this version, and the libraries found on this machine
    #[command(after_help = "Exit codes: 0, 3 stdout cannot be written.")]
    Targets,
    /// Say what this machine can do: memory, libraries, self-test
    #[command(after_help = "Exit codes: 0 fine, 2 usage, 3 no worker can be started or the self-test failed.")]
    Doctor {
        /// Seconds, or a time such as 90s or 2m: how long one case may take
        #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
        case_timeout: Duration,
    },
    #[command(name = "__worker", hide = true)]
    Worker(WorkerArgs),
    #[command(name = "__program", hide = true)]
    Program,
}

#[derive(Debug, Subcommand)]
pub enum CorpusCommand {
    /// List the seed cases of a folder; runs nothing
    #[command(after_help = CORPUS_HELP)]
    List {
        /// Folder of seed cases, one file each, and its direct subfolders
        #[arg(default_value = "corpus")]
        folder: PathBuf,
        /// Manifest that describes the problem of cases that are not built in
        #[arg(long, value_name = "PATH")]
        manifest: Option<PathBuf>,
        /// Write JSON Lines to stdout
        #[arg(long)]
        json: bool,
    },
    /// Say which seed cases add nothing to those before them; runs nothing unless --target or --lib is given
    #[command(after_help = CORPUS_HELP)]
    Minimise(MinimiseArgs),
    /// Put the seed cases of several folders into a new one, without those that are there twice; runs nothing
    #[command(after_help = CORPUS_HELP)]
    Merge {
        /// Two or more folders; of a case that is in several of them the first file is taken
        #[arg(required = true, num_args = 2..)]
        folders: Vec<PathBuf>,
        /// A folder that is new or empty
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
        /// Manifest that describes the problem of cases that are not built in
        #[arg(long, value_name = "PATH")]
        manifest: Option<PathBuf>,
        /// Write JSON Lines to stdout
        #[arg(long)]
        json: bool,
    },
}

/// Options of `corpus minimise`.
#[derive(Debug, Args)]
pub struct MinimiseArgs {
    /// Folder of seed cases, one file each, and its direct subfolders
    #[arg(default_value = "corpus")]
    pub folder: PathBuf,
    /// Copy the cases that are kept into this folder, which is new or empty
    #[arg(long, value_name = "DIR", conflicts_with = "write")]
    pub into: Option<PathBuf>,
    /// Remove the files of the cases that are not kept
    #[arg(long)]
    pub write: bool,
    /// Run the cases on this target, and tell them apart by what comes of it, too: sim:MODEL, cblas with --lib, or, for
    /// cases of a manifest, auto
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    #[command(flatten)]
    pub library: Library,
    /// Manifest that describes the problem of cases that are not built in
    #[arg(long, value_name = "PATH")]
    pub manifest: Option<PathBuf>,
    #[command(flatten)]
    pub exec: Exec,
}

/// Options of a hunt.
#[derive(Debug, Clone, Args)]
pub struct Hunt {
    /// What is tested: sim:MODEL (a built-in model), cblas with --lib, on an NVIDIA GPU cublaslt, cublas or kernel:FILE, or auto:
    /// cblas where --lib is given, else a model
    #[arg(long, value_name = "TARGET", default_value = "auto")]
    pub target: String,
    #[command(flatten)]
    pub library: Library,
    /// Ask NVIDIA's compute-sanitizer for the exact byte of a fault on a GPU, once it is shrunk
    #[arg(long)]
    pub sanitizer: bool,
    /// Seed of the search; the same seed, corpus, target and --cases give the same cases
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// End after this time, such as 30s, 5m or 2h; a case under way is waited for [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// End after this many cases [default: 10000, or no limit with --time]; with --shard all shards together have so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub cases: Option<u64>,
    /// Go on after the first finding, new or known: without it, failing cases after a known one are not looked into
    #[arg(long)]
    pub keep_going: bool,
    /// Go on with the hunt in --out that was interrupted or killed, or that is to be longer: name all options that it was
    /// begun with; --cases, --time (of this run) and --jobs may change. `shrinkfault status` prints the command
    #[arg(long)]
    pub resume: bool,
    /// Take the K-th of N parts of the hunt, for N machines with the same options: no two have a case number or a group of
    /// cases in common, and each learns from its own results only
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE, hide_default_value = true)]
    pub shard: Shard,
    #[command(flatten)]
    pub pins: Pins,
    /// Folder for findings, counts and the journal; one hunt at a time
    #[arg(long, value_name = "DIR", default_value = "shrinkfault-out")]
    pub out: PathBuf,
    #[command(flatten)]
    pub exec: Exec,
    /// Shapes tried: strided inflates leading dimensions, packed leaves them at their least
    #[arg(long, value_enum, default_value_t = Profile::Strided)]
    pub profile: Profile,
    /// Operand placement, instead of a mixture: end, start, end+PAD, end/ALIGN (bytes)
    #[arg(long, value_name = "PLACE")]
    pub placement: Option<Placement>,
    /// Seed cases, one file each [default: those that come with the program]
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Known findings are read from here and from --out [default: regressions, if there is one]
    #[arg(long, value_name = "DIR")]
    pub regressions: Option<PathBuf>,
    /// Exit with 1 for findings that are known already, too
    #[arg(long)]
    pub fail_known: bool,
    /// Run every case so many times in a row in its process: finds what takes a second call, such as a cache
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Shrinks per signature before further cases are only counted
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub shrinks: u32,
}

/// Options of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// A finding, a corpus case, or parameters such as gemm:m=4,n=9,k=3,ldb=2147483647
    pub case: String,
    /// Manifest of the program, instead of the one that a finding names; or for parameters such as my-kernel:M=4
    #[arg(long, value_name = "PATH")]
    pub manifest: Option<PathBuf>,
    /// What is tested, instead of the finding's own target: sim:MODEL, or cblas with --lib
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    #[command(flatten)]
    pub library: Libraries,
    #[command(flatten)]
    pub pins: Pins,
    /// Folder for findings, counts and the journal
    #[arg(long, value_name = "DIR", default_value = "shrinkfault-out")]
    pub out: PathBuf,
    /// Folder that a finding is looked for in by name, beside --out
    #[arg(long, value_name = "DIR", default_value = "regressions")]
    pub regressions: PathBuf,
    #[command(flatten)]
    pub exec: Exec,
    /// Operand placement: end, start, end+PAD, end/ALIGN (bytes)
    #[arg(long, value_name = "PLACE")]
    pub placement: Option<Placement>,
    /// Knob of the target
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, value_delimiter = ',')]
    pub knob: Vec<(String, String)>,
    /// Run the case once per rank, each in a process of its own, and list which ranks fail
    #[arg(long)]
    pub each_rank: bool,
    /// Run the case up to so many times in a row in one process, and say which run fails first
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "each_rank",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: u32,
    /// Seed of the operand contents
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// One of several libraries that are compared: it is meant to be another one than the finding's.
    #[arg(skip)]
    pub compared: bool,
}

/// Options of `shrink`.
#[derive(Debug, Args)]
pub struct ShrinkArgs {
    #[command(flatten)]
    pub run: RunArgs,
    /// End after this time and keep the smallest case so far
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// strided leaves strides free, packed keeps them at their least
    #[arg(long, value_enum, default_value_t = Profile::Strided)]
    pub profile: Profile,
    /// Ask NVIDIA's compute-sanitizer for the exact byte of a fault on a GPU, once it is shrunk
    #[arg(long)]
    pub sanitizer: bool,
    /// How integers are searched; plain bisection is there to be compared with
    #[arg(long, value_enum, default_value_t = Strategy::HintFirst)]
    pub strategy: Strategy,
}

/// Options of `regress`.
#[derive(Debug, Args)]
pub struct RegressArgs {
    /// A folder of findings, looked through with all its subfolders, or one finding
    #[arg(default_value = "regressions")]
    pub place: PathBuf,
    /// Run all findings on this target instead of their own
    #[arg(long, value_name = "TARGET")]
    pub target: Option<String>,
    #[command(flatten)]
    pub library: Library,
    /// Write what is found into the files: status fixed or open again, and a line that moved. Nothing else edits them
    #[arg(long, conflicts_with = "target")]
    pub update: bool,
    /// Write a JUnit report, one test per finding
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Take the K-th of N parts of the findings, for N machines side by side
    #[arg(long, value_name = "K/N")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub exec: Exec,
}

/// Options of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Shapes: a TOML file with an array of tables, a case file or a folder of them, a CSV file whose header names
    /// parameters, or lines such as m=608,n=5376; - reads stdin
    pub shapes: String,
    /// The finding whose line counts: its file, or its name in --regressions or in --out
    #[arg(long, value_name = "FINDING")]
    pub law: String,
    /// Give parameters that the list does not name, for all shapes, such as dtype=f16; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, value_delimiter = ',')]
    pub set: Vec<(String, String)>,
    /// Folder that a finding is looked for in by name
    #[arg(long, value_name = "DIR", default_value = "shrinkfault-out")]
    pub out: PathBuf,
    /// Folder that a finding is looked for in by name, beside --out
    #[arg(long, value_name = "DIR", default_value = "regressions")]
    pub regressions: PathBuf,
    /// Write events as JSON Lines to stdout
    #[arg(long)]
    pub json: bool,
    /// Print only the shapes past the line
    #[arg(short, long)]
    pub quiet: bool,
}

/// The library under test.
#[derive(Debug, Clone, Args)]
pub struct Library {
    /// File of the library, for targets that load one
    #[arg(long, value_name = "PATH")]
    pub lib: Option<String>,
    /// Width of the library's integers in bits, where it cannot be detected
    #[arg(long, value_name = "BITS", value_parser = int_width)]
    pub int_width: Option<u32>,
}

/// Libraries that one case runs on, one after the other.
#[derive(Debug, Clone, Args)]
pub struct Libraries {
    /// File of the library, for targets that load one; `run` takes several, oldest first, and says which is the first bad one
    #[arg(long, value_name = "PATH")]
    pub lib: Vec<String>,
    /// Width of the library's integers in bits, where it cannot be detected
    #[arg(long, value_name = "BITS", value_parser = int_width)]
    pub int_width: Option<u32>,
}

/// What is pinned or limited.
#[derive(Debug, Clone, Args)]
pub struct Pins {
    /// Pin parameters, such as m=1,transA=T or ldb=2^31; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = set, value_delimiter = ',')]
    pub set: Vec<Narrow>,
    /// Limit integer parameters, such as m=1..4096,ldb=1..2^31; may be repeated
    #[arg(long, value_name = "NAME=MIN..MAX", value_parser = range, value_delimiter = ',')]
    pub range: Vec<Narrow>,
    /// Pin the element type: the same as --set dtype=TYPE
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<String>,
}

/// How cases are executed.
#[derive(Debug, Clone, Args)]
pub struct Exec {
    /// Workers side by side [default: the number of processors, 8 at most, 4 on a GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
    /// Write events as JSON Lines to stdout
    #[arg(long)]
    pub json: bool,
    /// Largest work of one case in multiply-adds or moved elements, and twice the most elements that its operands may
    /// have; above it a library skips, a model runs a sample [default: 2^21 in a hunt of gemm, on a model 2^20, 2^22 in
    /// one of allgather, 2^24 in one of a manifest; else 2^28, on a model 2^22]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_work: Option<u64>,
    /// Most memory mapped for one case, such as 512MiB
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = bytes)]
    pub max_memory: u64,
    /// How long one case may take; a case that hangs must do so for four times as long when it runs alone, else it is
    /// slow, and the limit grows [default: 10s, or what the manifest says]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub case_timeout: Option<Duration>,
    /// How long a worker may take to start [default: 60s, or what the manifest says]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub start_timeout: Option<Duration>,
    /// Runs that must fail, each in a fresh process, before a case counts as confirmed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub confirm: u32,
    /// Reads between the rows of an operand are failures too
    #[arg(long)]
    pub strict_gaps: bool,
    /// Print less
    #[arg(short, long)]
    pub quiet: bool,
    /// Print what the cases of a hunt covered even where something was found
    #[arg(long)]
    pub stats: bool,
}

/// Arguments that the supervisor gives a worker.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    #[arg(long)]
    pub problem: String,
    #[arg(long)]
    pub target: TargetSpec,
    #[arg(long)]
    pub arena: u64,
    #[arg(long)]
    pub int_width: Option<u32>,
    #[arg(long)]
    pub identify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    Strided,
    Packed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    HintFirst,
    PlainBisection,
}

/// The routines that have no command of their own.
fn routines() -> PossibleValuesParser {
    let own = |b: &Builtin| b.name != "gemm" && Routine::find(b.name).is_some();
    BUILTINS.iter().filter(|b| own(b)).map(|b| PossibleValue::new(b.name).help(b.about)).collect::<Vec<_>>().into()
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<f64>() {
        Ok(s) if (0.001..=1e9).contains(&s) => return Ok(Duration::from_secs_f64(s)),
        Ok(_) => None,
        Err(_) => humantime::parse_duration(text).ok().filter(|d| !d.is_zero() && d.as_secs() <= 1_000_000_000),
    };
    parsed.ok_or_else(|| "write a time such as 30s, 5m or 2h".to_owned())
}

fn bytes(text: &str) -> Result<u64, String> {
    let parsed = text.parse::<bytesize::ByteSize>().map(|b| b.as_u64());
    parsed.ok().filter(|b| *b >= 4096).ok_or_else(|| "write a size of at least 4KiB, such as 512MiB".to_owned())
}

fn int_width(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err("integers of a BLAS have 32 or 64 bits".to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((n, v)) if !n.is_empty() && !v.is_empty() => Ok((n.to_owned(), v.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn set(text: &str) -> Result<Narrow, String> {
    let (param, value) = pair(text)?;
    Ok(Narrow::Set { param, value: Value::from_word(&value) })
}

fn range(text: &str) -> Result<Narrow, String> {
    let (param, span) = pair(text)?;
    let bad = || "write NAME=MIN..MAX with integers, both included".to_owned();
    let (min, max) = span.split_once("..").ok_or_else(bad)?;
    let number = |t: &str| crate::problem::param::integer(t.trim_start_matches('=')).ok_or_else(bad);
    let (min, max) = (number(min)?, number(max)?);
    if min > max {
        return Err(format!("{param}: {min} is above {max}"));
    }
    Ok(Narrow::Range { param, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_blas_names_every_parameter_of_every_routine() {
        let words: Vec<&str> = BLAS_HELP.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        for b in BUILTINS.iter().filter(|b| b.name != "gemm" && Routine::find(b.name).is_some()) {
            for p in &b.problem().params {
                assert!(words.contains(&p.name.as_str()), "{}: {}", b.name, p.name);
            }
        }
    }

    #[test]
    fn times_sizes_and_ranges_are_read_or_refused_with_a_sentence() {
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        for bad in ["", "0", "-1", "nan", "inf", "5 parsecs", "1e300", "18446744073709551615s"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!(bytes("1GiB"), Ok(1 << 30));
        assert!(bytes("12").is_err() && bytes("many").is_err());
        assert_eq!(range("m=1..4_096"), Ok(Narrow::Range { param: "m".into(), min: 1, max: 4096 }));
        assert_eq!(range("m=1..2^31-1"), Ok(Narrow::Range { param: "m".into(), min: 1, max: (1 << 31) - 1 }));
        assert!(range("m=9..1").is_err() && range("m=1").is_err() && range("=1..2").is_err());
    }
}
