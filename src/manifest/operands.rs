//! Operands of a manifest.

use super::params::identifier;
use super::source::{Fields, Node};
use super::{Extra, MOST, ManifestError};
use crate::problem::expr::{Condition, Expr};
use crate::problem::{Constraint, Dim, Dtype, ElementType, Gaps, Operand, Problem, Use};

const KEYS: [&str; 13] = [
    "name",
    "dtype",
    "bytes",
    "access",
    "dims",
    "offset",
    "allocated",
    "align",
    "gaps",
    "when",
    "alias",
    "ranks",
    "note",
];

/// The tables of the operands, with their names and element types in the problem: expressions may say `sizeof` of any of
/// them.
pub(super) fn names<'t>(top: &Fields<'t>, problem: &mut Problem) -> Result<Vec<Fields<'t>>, ManifestError> {
    let list = top.need("operands", "[[operands]] with name, dtype, access and dims")?;
    let nodes = list.list("[[operands]] tables")?;
    if nodes.is_empty() || nodes.len() > MOST {
        return Err(list.error(format!("a problem has 1 to {MOST} operands")));
    }
    let tables = nodes.iter().map(|n| n.fields(&KEYS)).collect::<Result<Vec<_>, _>>()?;
    for (node, fields) in nodes.iter().zip(&tables) {
        let operand = named(node, fields, problem)?;
        problem.operands.push(operand);
    }
    Ok(tables)
}

/// Fills in the rest of the operands; what the problem has no place for is returned, by operand.
pub(super) fn fill_all(tables: &[Fields<'_>], problem: &mut Problem) -> Result<Vec<Extra>, ManifestError> {
    tables.iter().enumerate().map(|(i, fields)| fill(fields, i, problem)).collect()
}

fn named(node: &Node<'_>, fields: &Fields<'_>, problem: &Problem) -> Result<Operand, ManifestError> {
    let name_node = fields.need("name", "name = \"A\"")?;
    let name = identifier(name_node, name_node.text()?)?;
    if problem.operand(&name).is_some() {
        return Err(name_node.error(format!("there is another operand '{name}'")));
    }
    let access_node = fields.need("access", "access = \"r\", \"w\" or \"rw\"")?;
    let access = match access_node.text()? {
        "r" => Use::Read,
        "w" => Use::Write,
        "rw" => Use::ReadWrite,
        other => return Err(access_node.error(format!("'{other}' is not one of r, w, rw"))),
    };
    let gaps = match fields.get("gaps").map(|n| Ok((n, n.text()?))).transpose()? {
        None | Some((_, "none")) => Gaps::None,
        Some((_, "read")) => Gaps::Read,
        Some((n, other)) => return Err(n.error(format!("'{other}' is not one of none, read"))),
    };
    Ok(Operand {
        name,
        element: element(node, fields, problem)?,
        access,
        read_only_when: None,
        dims: vec![],
        offset: None,
        gaps,
        when: None,
        defined_when: None,
        alias: None,
        ranks: None,
    })
}

fn element(node: &Node<'_>, fields: &Fields<'_>, problem: &Problem) -> Result<ElementType, ManifestError> {
    let (dtype, bytes) = match (fields.get("dtype"), fields.get("bytes")) {
        (Some(d), None) => (d, d.text()?),
        (None, Some(b)) => {
            return match b.integer()? {
                n @ 1..=65536 => Ok(ElementType::Bytes(n as u64)),
                _ => Err(b.error("an element has 1 to 65536 bytes")),
            };
        }
        (Some(_), Some(b)) => return Err(b.error("an operand has either dtype or bytes")),
        (None, None) => {
            return Err(node.error(
                "dtype is missing: write dtype = \"f32\", dtype = \"{dtype}\" for the parameter dtype, or bytes = 4",
            ));
        }
    };
    let known = |text: &str| {
        Dtype::from_name(text).ok_or_else(|| {
            let names: Vec<&str> = Dtype::all().map(Dtype::name).collect();
            dtype.error(format!("'{text}' is not one of {}; or write bytes = n", names.join(", ")))
        })
    };
    let Some(name) = bytes.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Ok(ElementType::Fixed(known(bytes)?));
    };
    let param = problem.param(name).ok_or_else(|| dtype.error(format!("there is no parameter '{name}'")))?;
    let texts = problem.params[param].texts();
    if texts.is_empty() {
        return Err(dtype.error(format!("{name} is an integer; give it values = [\"f32\", ..]")));
    }
    let types = texts.iter().map(|t| known(t)).collect::<Result<Vec<Dtype>, _>>()?;
    Ok(ElementType::Param { param, types })
}

fn expr(node: &Node<'_>, problem: &Problem) -> Result<Expr, ManifestError> {
    let text = node.text()?;
    Expr::parse(text, problem).map_err(|e| node.error(format!("'{text}': {e}")))
}

fn fill(fields: &Fields<'_>, index: usize, problem: &mut Problem) -> Result<Extra, ManifestError> {
    let optional = |key: &str| fields.get(key).map(|n| expr(n, problem)).transpose();
    let (offset, ranks, allocated) = (optional("offset")?, optional("ranks")?, optional("allocated")?);
    let dims = dims(fields, problem)?;
    let when = match fields.get("when") {
        None => None,
        Some(n) => {
            let text = n.text()?;
            Some(Condition::parse(text, problem).map_err(|e| n.error(format!("'{text}': {e}")))?)
        }
    };
    let alias = fields.get("alias").map(|n| host(n, index, problem)).transpose()?;
    let align = fields.get("align").map(alignment).transpose()?.unwrap_or(0);
    let operand = &mut problem.operands[index];
    (operand.dims, operand.offset, operand.ranks) = (dims, offset, ranks);
    (operand.when, operand.alias) = (when, alias);
    let allocated_bytes = match allocated {
        None => None,
        Some(allocated) => Some(holds_the_elements(fields, &allocated, index, problem)?),
    };
    Ok(Extra { align, allocated_bytes })
}

fn dims(fields: &Fields<'_>, problem: &Problem) -> Result<Vec<Dim>, ManifestError> {
    const EXAMPLE: &str = "[[\"M\", \"1\"], [\"K\", \"lda\"]]: extent and stride in elements";
    let node = fields.need("dims", &format!("dims = {EXAMPLE}"))?;
    let mut dims = vec![];
    for dim in node.list(EXAMPLE)? {
        match &dim.list(EXAMPLE)?[..] {
            [extent, stride] => dims.push(Dim { extent: expr(extent, problem)?, stride: expr(stride, problem)? }),
            _ => return Err(dim.error(format!("a dimension is a pair; write {EXAMPLE}"))),
        }
    }
    if dims.len() > MOST {
        return Err(node.error(format!("an operand has {MOST} dimensions at most")));
    }
    Ok(dims)
}

/// The operand in whose memory another one lies.
fn host(node: &Node<'_>, index: usize, problem: &Problem) -> Result<usize, ManifestError> {
    let name = node.text()?;
    match problem.operand(name) {
        None => Err(node.error(format!("there is no operand '{name}'"))),
        Some(host) if host == index => Err(node.error("an operand does not lie in itself")),
        Some(host) if problem.operands[host].alias.is_some() => {
            Err(node.error(format!("'{name}' is an alias itself; name the operand that it lies in")))
        }
        Some(host) => Ok(host),
    }
}

fn alignment(node: &Node<'_>) -> Result<u32, ManifestError> {
    match node.integer()? {
        n @ 1..=4096 if (n as u64).is_power_of_two() => Ok(n as u32),
        _ => Err(node.error("an alignment is a power of two from 1 to 4096, in bytes")),
    }
}

/// Adds the constraint that every element lies in the memory that the program allocates; the bytes of that memory.
fn holds_the_elements(
    fields: &Fields<'_>,
    allocated: &Expr,
    index: usize,
    problem: &mut Problem,
) -> Result<String, ManifestError> {
    let operand = &problem.operands[index];
    let exists = operand.when.as_ref().map(|w| w.text().to_owned());
    let only = |text: String, otherwise: &str| match &exists {
        Some(when) => format!("if({when}, {text}, {otherwise})"),
        None => text,
    };
    let reach: String = operand
        .dims
        .iter()
        .map(|d| format!(" + max(({}) - 1, 0) * max({}, 0)", d.extent.text(), d.stride.text()))
        .collect();
    // Copies of different ranks have memory of their own; `rank` is 0 in a constraint.
    let offset = operand.offset.as_ref().map_or("0", |o| o.text());
    let fits =
        format!("{} >= {}", only(format!("({})", allocated.text()), "0"), only(format!("({offset}){reach} + 1"), "0"));
    let copies = operand.ranks.as_ref().map_or("1", |r| r.text());
    let bytes = only(format!("({}) * ({copies}) * sizeof({})", allocated.text(), operand.name), "0");
    let node = fields.need("allocated", "allocated = \"M * K\"")?;
    let condition = Condition::parse(&fits, problem).map_err(|e| node.error(format!("'{fits}': {e}")))?;
    let constraint = Constraint::new(condition, &problem.params);
    problem.constraints.push(constraint);
    Ok(bytes)
}
