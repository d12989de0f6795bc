//! Lists of shapes: TOML with an array of tables, case files, CSV with a header, or lines of `m=608,n=5376`.

use super::Catalog;
use super::case_file::{self, CaseInput};
use super::read;
use crate::problem::{Assignment, Knobs, Placement, Problem, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// One shape of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Where it stands: `line 3`, `table 2`, or its file.
    pub place: String,
    pub params: Assignment,
    /// Where it names any.
    pub knobs: Option<Knobs>,
    pub placement: Option<Placement>,
}

/// Parameters as a list names them.
type Row = Vec<(String, Value)>;

/// Reads a file, or a folder of case files, as shapes of a problem; `also` gives what the list leaves out.
///
/// # Errors
/// A sentence that names the place, where something is no shape of the problem.
pub fn from_path(path: &Path, problem: &Problem, also: &Row) -> Result<Vec<Shape>, String> {
    if !path.is_dir() {
        let text = read::list(path).map_err(|e| e.to_string())?;
        let in_file = |e| format!("{}: {e}", path.display());
        return from_text(&text, path, problem, also).map_err(in_file);
    }
    let entries = std::fs::read_dir(path).map_err(|e| format!("failed to read {}: {e}", path.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let case = |file: &std::path::PathBuf| {
        let input = CaseInput::from_file(file, &Catalog::default()).map_err(|e| e.to_string())?;
        from_case(input, problem, also).map_err(|e| format!("{}: {e}", file.display()))
    };
    files.iter().map(case).collect()
}

/// Reads a text. The ending of the file says what it is; where it does not, the text does.
///
/// # Errors
/// A sentence that names the place, where something is no shape of the problem.
pub fn from_text(text: &str, file: &Path, problem: &Problem, also: &Row) -> Result<Vec<Shape>, String> {
    let first = text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).unwrap_or_default();
    match file.extension().and_then(|e| e.to_str()) {
        Some("toml") => from_toml(text, file, problem, also),
        Some("csv") => from_csv(text, problem, also),
        _ if text.lines().any(|l| l.starts_with('[')) => from_toml(text, file, problem, also),
        _ if first.contains('=') || first.is_empty() => from_lines(text, problem, also),
        _ => from_csv(text, problem, also),
    }
}

fn from_case(input: CaseInput, problem: &Problem, also: &Row) -> Result<Shape, String> {
    if input.problem.name != problem.name {
        return Err(format!("it is a case of {}, and the finding is one of {}", input.problem.name, problem.name));
    }
    let row = input.named.into_iter().collect();
    let mut shape = shape(input.source, row, problem, also)?;
    shape.knobs = Some(input.knobs);
    shape.placement = input.placement;
    Ok(shape)
}

fn from_toml(text: &str, file: &Path, problem: &Problem, also: &Row) -> Result<Vec<Shape>, String> {
    let table: toml::Table = read::typed(text)?;
    if table.contains_key("params") || table.contains_key("minimal") {
        let input = case_file::parse(&file.display().to_string(), text, &Catalog::default().near(file))?;
        return Ok(vec![from_case(input, problem, also)?]);
    }
    let mut shapes = vec![];
    for (name, value) in table {
        let toml::Value::Array(rows) = value else {
            return Err(format!(
                "'{name}' is no array of tables: write [[{name}]] above the parameters of every shape"
            ));
        };
        for (i, row) in rows.into_iter().enumerate() {
            let place = format!("{name} {}", i + 1);
            let row = of_table(row).map_err(|e| format!("{place}: {e}"))?;
            shapes.push(shape(place, row, problem, also)?);
        }
    }
    Ok(shapes)
}

fn of_table(row: toml::Value) -> Result<Row, String> {
    let toml::Value::Table(row) = row else { return Err("it is no table of parameters".to_owned()) };
    let value = |(name, value)| {
        let value = match value {
            toml::Value::Integer(i) => Value::Int(i),
            toml::Value::Boolean(b) => Value::Bool(b),
            toml::Value::String(s) => Value::Text(s),
            other => return Err(format!("{name} = {other} is no value of a parameter")),
        };
        Ok((name, value))
    };
    row.into_iter().map(value).collect()
}

fn from_csv(text: &str, problem: &Problem, also: &Row) -> Result<Vec<Shape>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| format!("the header of the CSV does not read: {e}"))?.clone();
    let mut shapes = vec![];
    for record in reader.records() {
        let record = record.map_err(|e| format!("the CSV does not read: {e}"))?;
        let place = record.position().map_or_else(String::new, |p| format!("line {}", p.line()));
        let cells = header.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty());
        let row = cells.map(|(name, cell)| (name.to_owned(), Value::from_word(cell))).collect();
        shapes.push(shape(place, row, problem, also)?);
    }
    Ok(shapes)
}

fn from_lines(text: &str, problem: &Problem, also: &Row) -> Result<Vec<Shape>, String> {
    let mut shapes = vec![];
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("line {}", i + 1);
        let line = line.strip_prefix(&format!("{}:", problem.name)).unwrap_or(line);
        let words = line.split([',', ' ', '\t']).filter(|w| !w.is_empty());
        let row: Result<Row, String> = words.map(|w| of_word(w).map_err(|e| format!("{place}: {e}"))).collect();
        shapes.push(shape(place, row?, problem, also)?);
    }
    Ok(shapes)
}

fn of_word(word: &str) -> Result<(String, Value), String> {
    match word.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), Value::from_word(value))),
        _ => Err(format!("'{word}' should read NAME=VALUE, for instance m=608")),
    }
}

/// Completes what a row names.
fn shape(place: String, mut row: Row, problem: &Problem, also: &Row) -> Result<Shape, String> {
    // Names and values may hold line breaks in CSV and TOML.
    let at = |e: String| format!("{place}: {}", e.replace(['\n', '\r'], " "));
    for (i, (name, _)) in row.iter().enumerate() {
        if row[..i].iter().any(|(have, _)| have == name) {
            return Err(at(format!("{name} is given twice")));
        }
    }
    let missing = |(name, _): &&(String, Value)| !row.iter().any(|(have, _)| have == name);
    let more: Row = also.iter().filter(missing).cloned().collect();
    row.extend(more);
    let named: BTreeMap<String, Value> = case_file::named(problem, row).map_err(at)?;
    let params = problem.complete(&named).map_err(|e| at(e.to_string()))?;
    Ok(Shape { place, params, knobs: None, placement: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Builtin;
    use proptest::prelude::*;

    fn read(file: &str, text: &str) -> Result<Vec<Shape>, String> {
        let also = vec![("dtype".to_owned(), Value::from_word("f16"))];
        from_text(text, Path::new(file), &Builtin::find("gemm").unwrap().problem(), &also)
    }

    /// `line 1: m=2 n=3 k=1 ...` of every shape.
    fn short(file: &str, text: &str) -> Vec<String> {
        let problem = Builtin::find("gemm").unwrap().problem();
        let shapes = read(file, text).unwrap();
        shapes.iter().map(|s| format!("{}: {}", s.place, problem.short(&s.params))).collect()
    }

    #[test]
    fn the_same_shapes_read_alike_in_every_form() {
        let rows = ["m=2 n=3 k=1 lda=2 ldc=2 dtype=f16", "m=4 n=5 k=6 lda=4 ldb=9 ldc=4 dtype=f64"];
        let places = |p: [&str; 2]| [format!("{}: {}", p[0], rows[0]), format!("{}: {}", p[1], rows[1])];
        let lines = "# shapes\nm=2,n=3,k=1\n\n gemm:m=4 n=5, k=6,ldb=9 dtype=f64\n";
        assert_eq!(short("-", lines), places(["line 2", "line 4"]));
        let csv = "m, n,k,ldb,dtype\n2,3,1,,\n4,5,6,9,\"f64\"\n";
        assert_eq!(short("x.csv", csv), places(["line 2", "line 3"]));
        assert_eq!(short("-", csv), places(["line 2", "line 3"]));
        let toml = "[[shape]]\nm=2\nn=3\nk=1\n[[shape]]\nm=4\nn=5\nk=6\nldb=9\ndtype='f64'\n";
        assert_eq!(short("x.toml", toml), places(["shape 1", "shape 2"]));
        assert_eq!(short("-", toml), places(["shape 1", "shape 2"]));
    }

    #[test]
    fn a_case_file_is_a_list_of_one() {
        let text = "format = 1\nproblem = 'gemm'\nplacement = 'start'\n[params]\nm = 2\n";
        let shapes = read("x.toml", text).unwrap();
        assert_eq!((shapes.len(), shapes[0].placement), (1, Some(Placement::START)));
        let other = text.replace("gemm", "allgather").replace("m = 2", "M = 2");
        assert!(read("x.toml", &other).unwrap_err().contains("it is a case of allgather"));
    }

    #[test]
    fn what_is_no_shape_is_named_by_its_place() {
        let error = |file, text| read(file, text).unwrap_err();
        assert!(error("-", "m=2,n=3\nm=2,q=3").starts_with("line 2: gemm has no parameter 'q'"));
        assert!(error("-", "m=2,m=3").starts_with("line 1: m is given twice"));
        assert!(error("-", "m=2\nwhat").starts_with("line 2: 'what' should read NAME=VALUE"));
        assert!(error("-", "m=9,lda=3").starts_with("line 1: "));
        assert!(error("x.csv", "m,n\n1\n").contains("does not read"));
        assert!(error("x.csv", "m,\"n\nx\"\n1,2\n").starts_with("line 3: gemm has no parameter 'n x'"));
        assert!(error("x.csv", "m,z\n1,2\n").starts_with("line 2: gemm has no parameter 'z'"));
        assert!(error("x.toml", "m = 2").contains("write [[m]] above"));
        assert!(error("x.toml", "[[s]]\nm = 1.5").starts_with("s 1: m = 1.5"));
        assert_eq!(read("-", "\n# nothing\n"), Ok(vec![]));
    }

    proptest! {
        #[test]
        fn any_text_is_a_list_or_one_sentence(text in "[ mnk=,0-9\\[\\]\n#\"a]{0,60}", file in "x\\.(toml|csv|txt)") {
            if let Err(e) = read(&file, &text) {
                prop_assert!(!e.is_empty() && !e.trim_end().contains('\n'), "{}", e);
            }
        }
    }
}
