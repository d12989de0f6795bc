//! Arguments of a kernel: pointers to operands, and numbers that follow from the case.

use crate::problem::expr::Expr;
use crate::problem::{Instance, Problem};
use crate::target::Bases;

/// Type of a number in the kernel's parameter list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
}

const KINDS: [(&str, Kind); 6] = [
    ("i32", Kind::I32),
    ("u32", Kind::U32),
    ("i64", Kind::I64),
    ("u64", Kind::U64),
    ("f32", Kind::F32),
    ("f64", Kind::F64),
];

/// What a number is computed from.
#[derive(Debug, Clone)]
enum From {
    Expr(Expr),
    /// A choice parameter whose values are numbers, such as alpha.
    Choice(String),
}

/// One argument.
#[derive(Debug, Clone)]
pub enum Arg {
    /// Base pointer of an operand: that of the rank's copy where it has several; null where the case lacks it.
    Operand(usize),
    /// Pointer to a table of the base pointers of all copies of an operand.
    Table(usize),
    /// A number.
    Number(NumberArg),
}

/// A number as the kernel takes it.
#[derive(Debug, Clone)]
pub struct NumberArg {
    kind: Kind,
    from: From,
    text: String,
}

impl Arg {
    /// Reads `A`, `out[]` or `i32 lda`.
    ///
    /// # Errors
    /// One sentence.
    pub fn parse(text: &str, problem: &Problem) -> Result<Arg, String> {
        let text = text.trim();
        if let Some(operand) = problem.operand(text) {
            return Ok(Arg::Operand(operand));
        }
        if let Some(operand) = text.strip_suffix("[]").and_then(|name| problem.operand(name)) {
            return Ok(Arg::Table(operand));
        }
        let names: Vec<&str> = problem.operands.iter().map(|o| o.name.as_str()).collect();
        let unknown = || {
            format!(
                "argument '{text}': write an operand ({}), one with [] for the table of its copies, or a type (i32 u32 i64 u64 \
                 f32 f64) and an expression",
                names.join(", ")
            )
        };
        let (kind, expr) = text.split_once(char::is_whitespace).ok_or_else(unknown)?;
        let kind = KINDS.iter().find(|k| k.0 == kind).ok_or_else(unknown)?.1;
        let expr = expr.trim();
        let choice = problem.param(expr).filter(|i| problem.params[*i].is_choice());
        let from = match choice {
            Some(_) => From::Choice(expr.to_owned()),
            None => From::Expr(Expr::parse(expr, problem).map_err(|e| format!("argument '{text}': {e}"))?),
        };
        Ok(Arg::Number(NumberArg { kind, from, text: text.to_owned() }))
    }

    /// The bytes of the argument; `table` puts addresses on the card and gives the address of the first.
    ///
    /// # Errors
    /// One sentence, where a number does not fit its type.
    pub fn bytes(
        &self,
        instance: &Instance,
        rank: i64,
        bases: &dyn Bases,
        mut table: impl FnMut(&[u64]) -> Result<u64, String>,
    ) -> Result<Vec<u8>, String> {
        let base = |operand: usize, copy: u32| bases.base(operand, copy).expose_provenance() as u64;
        match self {
            Arg::Operand(o) => {
                let copy = |copies: u32| u32::try_from(rank).unwrap_or(0).min(copies - 1);
                let address = instance.view(*o).map_or(0, |v| base(*o, copy(v.copies())));
                Ok(address.to_le_bytes().to_vec())
            }
            Arg::Table(o) => {
                let all: Vec<u64> =
                    instance.view(*o).map_or(vec![], |v| (0..v.copies()).map(|c| base(*o, c)).collect());
                Ok(table(&all)?.to_le_bytes().to_vec())
            }
            Arg::Number(n) => n.bytes(instance, rank),
        }
    }
}

impl NumberArg {
    fn bytes(&self, instance: &Instance, rank: i64) -> Result<Vec<u8>, String> {
        let value = match &self.from {
            From::Choice(name) => {
                let word = instance.word(name);
                let float: f64 = word.parse().map_err(|_| format!("argument '{}': {word} is no number", self.text))?;
                if matches!(self.kind, Kind::F32 | Kind::F64) {
                    return Ok(self.float(float));
                }
                float as i128
            }
            From::Expr(e) => instance
                .problem
                .eval(e, &instance.case.params.0, rank)
                .map_err(|why| format!("argument '{}': {why}", self.text))?,
        };
        let bytes = match self.kind {
            Kind::I32 => i32::try_from(value).ok().map(|v| v.to_le_bytes().to_vec()),
            Kind::U32 => u32::try_from(value).ok().map(|v| v.to_le_bytes().to_vec()),
            Kind::I64 => i64::try_from(value).ok().map(|v| v.to_le_bytes().to_vec()),
            Kind::U64 => u64::try_from(value).ok().map(|v| v.to_le_bytes().to_vec()),
            Kind::F32 | Kind::F64 => Some(self.float(value as f64)),
        };
        bytes.ok_or_else(|| format!("argument '{}': {value} does not fit its type", self.text))
    }

    fn float(&self, value: f64) -> Vec<u8> {
        if self.kind == Kind::F32 { (value as f32).to_le_bytes().to_vec() } else { value.to_le_bytes().to_vec() }
    }
}

/// Whether every number of a case fits its type.
///
/// # Errors
/// One sentence, naming the first that does not.
pub fn fit(args: &[Arg], instance: &Instance) -> Result<(), String> {
    args.iter().try_for_each(|arg| match arg {
        Arg::Number(n) => n.bytes(instance, 0).map(drop),
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Builtin, Case, Placement, Value};

    fn instance(named: &[(&str, &str)]) -> Instance {
        let problem = Builtin::find("gemm").unwrap().problem();
        let named = named.iter().map(|(n, v)| ((*n).to_owned(), Value::from_word(v))).collect();
        let params = problem.complete(&named).unwrap();
        problem.instance(Case { params, knobs: Default::default(), placement: Placement::END }).unwrap()
    }

    fn number(text: &str, instance: &Instance) -> Result<Vec<u8>, String> {
        match Arg::parse(text, &instance.problem)? {
            Arg::Number(n) => n.bytes(instance, 0),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn numbers_have_the_bytes_of_their_type() {
        let i = instance(&[("m", "3"), ("ldb", "2147483648"), ("alpha", "-2")]);
        assert_eq!(number("i32 m * 2", &i).unwrap(), 6i32.to_le_bytes());
        assert_eq!(number("i64 ldb", &i).unwrap(), (1i64 << 31).to_le_bytes());
        assert_eq!(number("f32 alpha", &i).unwrap(), (-2f32).to_le_bytes());
        assert_eq!(number("f64 m", &i).unwrap(), 3f64.to_le_bytes());
        assert!(number("i32 ldb", &i).unwrap_err().contains("2147483648 does not fit"));
        assert!(fit(&[Arg::parse("u32 m - 4", &i.problem).unwrap()], &i).is_err());
    }

    #[test]
    fn operands_and_tables_are_told_apart() {
        let i = instance(&[]);
        assert!(matches!(Arg::parse("B", &i.problem), Ok(Arg::Operand(1))));
        assert!(matches!(Arg::parse(" C[] ", &i.problem), Ok(Arg::Table(2))));
        for wrong in ["X", "X[]", "i32", "int m", "i32 m +"] {
            let why = Arg::parse(wrong, &i.problem).unwrap_err();
            assert!(why.contains("argument") && !why.contains('\n'), "{why}");
        }
    }
}
