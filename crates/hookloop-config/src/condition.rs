//! The condition of a hook (`when`): a CEL expression that must be true for the hook to run.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use cel::extractors::This;
use cel::{Context, Env, ExecutionError, Program};
use hookloop_core::hook_vars::HookVariable;
use hookloop_core::point::Point;
use serde_json::{Value, json};

const LENGTH_MAX: usize = 1_000;
/// The most loops over lists in one expression: nested loops multiply.
const LOOPS_MAX: usize = 2;
/// The most patterns in one expression, and the largest size of a compiled one.
const PATTERNS_MAX: usize = 4;
const PATTERN_MAX_BYTES: usize = 64 * 1024;
const MATCHES: &str = "matches";
const TASK: &str = "task";

/// Largest number of cached conditions. Beyond it, the cache is emptied.
const KEPT_MAX: usize = 2_048;

/// The functions of the language. Collecting them takes longer than evaluating most conditions.
static FUNCTIONS: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));
/// Compiled conditions. Compiling takes a hundred times as long as evaluating.
static KEPT: LazyLock<Mutex<ConditionCache>> = LazyLock::new(Mutex::default);

/// Conditions by the name of their point and their text.
type ConditionCache = HashMap<(String, String), Arc<Condition>>;

/// A compiled condition.
pub struct Condition {
    program: Program,
    /// The names that the condition uses.
    names: Vec<&'static str>,
    /// The condition uses only the name of the point.
    is_fixed: bool,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Condition on {}", self.names.join(", "))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error("longer than {LENGTH_MAX} characters")]
    TooLong,
    #[error("more than {LOOPS_MAX} loops over lists")]
    TooManyLoops,
    #[error("`{MATCHES}` more than {PATTERNS_MAX} times, or in a loop over a list")]
    TooManyPatterns,
    #[error("{0}")]
    Syntax(String),
    #[error("there is no `{name}` at `{point}`; there are {known}")]
    UnknownName { name: String, point: String, known: String },
    #[error("it is {0}, not true or false")]
    NotBool(String),
    /// The name is known at the point, but has no value this time.
    #[error("`{0}` has no value here")]
    NoValue(&'static str),
    #[error("{0}")]
    Evaluation(String),
}

impl Condition {
    /// Compiles an expression for a point. Its names must have values there, and its result must be true or false.
    pub fn compile(text: &str, point: &Point) -> Result<Arc<Condition>, ConditionError> {
        let key = (point.name().to_owned(), text.to_owned());
        let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(condition) = kept().get(&key) {
            return Ok(Arc::clone(condition));
        }
        let condition = Arc::new(Condition::read(text, point)?);
        let mut kept = kept();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, Arc::clone(&condition));
        Ok(condition)
    }

    fn read(text: &str, point: &Point) -> Result<Condition, ConditionError> {
        if text.len() > LENGTH_MAX {
            return Err(ConditionError::TooLong);
        }
        let syntax =
            |error: cel::ParseErrors| ConditionError::Syntax(in_a_line(&error.to_string()));
        let program = Program::compile(text).map_err(syntax)?;
        let ExpressionCosts { loops, patterns, patterns_in_loops } =
            ExpressionCosts::of(program.expression());
        if loops.len() > LOOPS_MAX {
            return Err(ConditionError::TooManyLoops);
        }
        if patterns > PATTERNS_MAX || patterns_in_loops > 0 {
            return Err(ConditionError::TooManyPatterns);
        }
        let names = point.condition_names();
        let references = program.references();
        let named = references.variables();
        let own: Vec<&str> = loops.iter().flat_map(|each| variables(each)).collect();
        if let Some(name) = named.iter().find(|n| !names.contains(n) && !own.contains(n)) {
            let (name, point) = ((*name).to_owned(), point.to_string());
            return Err(ConditionError::UnknownName { name, point, known: names.join(", ") });
        }
        let is_fixed = named.iter().all(|name| ["point", "event"].contains(name));
        let names = names.into_iter().filter(|name| named.contains(name)).collect();
        drop(references);
        let condition = Condition { program, names, is_fixed };
        // A first evaluation finds further mistakes, such as a misspelt field of `task`.
        condition.holds(&sample(point))?;
        Ok(condition)
    }

    /// Returns the result if it is the same for every event of the point; `None` if it depends on values.
    pub fn always(&self, point: &Point) -> Option<bool> {
        let values = json!({ "point": point.name(), "event": point.name() });
        self.is_fixed.then(|| self.holds(&values).unwrap_or(false))
    }

    /// Returns whether the condition holds for these values: an object with the names of the point.
    ///
    /// A name without a value is an error, not null: a condition on null would switch a gate off. Only
    /// `task` may be null, which says that the session has no task.
    pub fn holds(&self, values: &Value) -> Result<bool, ConditionError> {
        let failed = |error: &dyn std::fmt::Display| {
            ConditionError::Evaluation(in_a_line(&error.to_string()))
        };
        let mut context = Context::with_env(Arc::clone(&FUNCTIONS));
        context.add_function(MATCHES, matches).map_err(|error| failed(&error))?;
        for name in &self.names {
            let value = match values.get(name) {
                None => return Err(ConditionError::NoValue(name)),
                Some(Value::Null) if *name != TASK => return Err(ConditionError::NoValue(name)),
                Some(value) => value,
            };
            context.add_variable(*name, value).map_err(|error| failed(&error))?;
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(ConditionError::NotBool(format!("{:?}", other.type_of()))),
            Err(_) if self.names.contains(&TASK) && values[TASK].is_null() => {
                Err(ConditionError::NoValue(TASK))
            }
            Err(error) => Err(failed(&error)),
        }
    }
}

/// The expensive parts of an expression.
#[derive(Default)]
struct ExpressionCosts<'a> {
    loops: Vec<&'a ComprehensionExpr>,
    patterns: usize,
    patterns_in_loops: usize,
}

impl ExpressionCosts<'_> {
    fn of(expression: &IdedExpr) -> ExpressionCosts<'_> {
        let mut costs = ExpressionCosts::default();
        let mut left = vec![(expression, false)];
        while let Some((expression, in_loop)) = left.pop() {
            if let Expr::Comprehension(each) = &expression.expr {
                costs.loops.push(each);
            }
            if let Expr::Call(call) = &expression.expr
                && call.func_name == MATCHES
            {
                costs.patterns += 1;
                costs.patterns_in_loops += usize::from(in_loop);
            }
            let in_loop = in_loop || matches!(expression.expr, Expr::Comprehension(_));
            left.extend(parts(&expression.expr).into_iter().map(|part| (part, in_loop)));
        }
        costs
    }
}

/// Returns the parts of an expression.
fn parts(expression: &Expr) -> Vec<&IdedExpr> {
    let entries = match expression {
        Expr::Map(map) => map.entries.as_slice(),
        Expr::Struct(made) => made.entries.as_slice(),
        _ => &[],
    };
    match expression {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&*select.operand],
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        _ => entries.iter().flat_map(|entry| parts_of_entry(&entry.expr)).collect(),
    }
}

fn parts_of_entry(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// Evaluates `text.matches(pattern)`.
///
/// A short pattern can be expensive to compile: with the default limit, up to a tenth of a second.
fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> Result<bool, ExecutionError> {
    let ready = regex::RegexBuilder::new(&pattern)
        .size_limit(PATTERN_MAX_BYTES)
        .dfa_size_limit(PATTERN_MAX_BYTES)
        .build();
    ready.map(|ready| ready.is_match(&text)).map_err(|error| {
        let message = error.to_string();
        ExecutionError::function_error(MATCHES, message.lines().last().unwrap_or_default())
    })
}

/// Returns the names that a loop gives to the elements of its list.
fn variables(each: &ComprehensionExpr) -> impl Iterator<Item = &str> {
    [Some(&each.iter_var), each.iter_var2.as_ref()].into_iter().flatten().map(String::as_str)
}

fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns sample values of a point.
fn sample(point: &Point) -> Value {
    let names = HookVariable::ALL.iter();
    names.map(|variable| (variable.name().to_owned(), variable.sample(point))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed() -> Point {
        "task_completed".parse().unwrap()
    }

    #[test]
    fn a_condition_is_evaluated_to_true_or_false() {
        let values = json!({
            "event": "task_completed", "point": "task_completed", "project": "p",
            "task": { "id": "a", "type": "fix", "labels": ["agent", "urgent"], "priority": 0 },
        });
        let check = |text: &str, expected: bool| {
            let condition = Condition::compile(text, &completed()).unwrap();
            assert_eq!(condition.holds(&values), Ok(expected), "{text}");
        };
        check("true", true);
        check("task.type == 'fix'", true);
        check("task.priority <= 1 && 'agent' in task.labels", true);
        check("task.labels.exists(l, l.startsWith('urg'))", true);
        check("event == 'task_created'", false);
        check("task.id.matches('^[0-9]+$')", false);
    }

    #[test]
    fn a_name_without_a_value_fails_the_condition() {
        let stop = Point::BeforeSubmit;
        let check = |text: &str, values: Value, expected: Result<bool, &'static str>| {
            let found = Condition::compile(text, &stop).unwrap().holds(&values);
            assert_eq!(found, expected.map_err(ConditionError::NoValue), "{text} {values}");
        };
        check("branch == 'main'", json!({}), Err("branch"));
        check("branch == 'main'", json!({ "branch": null }), Err("branch"));
        check("branch != 'main'", json!({ "branch": null }), Err("branch"));
        check("branch == 'main'", json!({ "branch": "main" }), Ok(true));
        check("task == null", json!({ "task": null }), Ok(true));
        check("task.type == 'fix'", json!({ "task": null }), Err("task"));
        check("task.type == 'fix'", json!({}), Err("task"));
    }

    #[test]
    fn mistakes_in_a_condition_are_found_when_compiled() {
        let check = |text: &str, part: &str| {
            let error = Condition::compile(text, &completed()).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        };
        check("task.type ==", "");
        check("taks.type == 'x'", "no `taks`");
        check("iteration > 3", "no `iteration` at `task_completed`");
        check("task.priority", "not true or false");
        check("task.kind == 'x'", "kind");
        check(&"true || ".repeat(200), "longer");
        check("[1].all(a, [1].all(b, [1].all(c, true)))", "loops");
        // A loop is a loop with a space in it, a comment, or under another name.
        check("[1].all (a, [1]. all(b, [1].all\n(c, true)))", "loops");
        check("'a'.matches('\\\\pL{90}')", "size limit");
        check("'a'.matches('(')", "unclosed group");
        check("[1].all(a, 'a'.matches('b'))", "in a loop");
        check(&["'a'.matches('b')"; 5].join(" || "), "more than 4");
        check("[1].existsOne(a, [1].existsOne(b, [1].existsOne(c, true)))", "loops");
        check("[1].all // (\n(a, {1: [1].map (b, [1].filter (c, true))} == {})", "loops");
    }
}
