//! The outline of an import before anything is stored: valid lines, a complete graph, and an order in which
//! dependencies come first.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use hookloop_config::patterns::glob;
use hookloop_core::decide::{DEPENDENCIES_MAX, check_spec};
use hookloop_core::id::TaskId;

use super::line::{ImportLine, said};
use super::{ImportError, LINE_MAX, NumberedLine};
use crate::project::Project;

/// Ids and dependencies of an input, as numbers.
#[derive(Default)]
pub(super) struct ImportOutline {
    names: HashMap<Box<str>, u32>,
    /// The line that defines each name (1 is the first), or 0 if no line does.
    defined: Vec<u32>,
    /// For each line: its offset, its name, and the end of its dependencies in `needs`.
    lines: Vec<u64>,
    line_names: Vec<u32>,
    ends: Vec<u32>,
    needs: Vec<u32>,
    /// Whether every dependency in the input is defined before its first use.
    sorted: bool,
}

impl ImportOutline {
    pub(super) fn read(input: &mut (impl BufRead + Seek)) -> Result<ImportOutline, ImportError> {
        input.seek(SeekFrom::Start(0))?;
        let mut outline = ImportOutline { sorted: true, ..ImportOutline::default() };
        let (mut text, mut offset, mut number) = (String::new(), 0, 0);
        loop {
            text.clear();
            let len = input.by_ref().take(LINE_MAX).read_line(&mut text)? as u64;
            if len == 0 {
                return Ok(outline);
            }
            number += 1;
            let at_line = |message: String| ImportError::Line { line: number, message };
            if len == LINE_MAX {
                return Err(at_line(format!("longer than {LINE_MAX} bytes")));
            }
            if !text.trim().is_empty() {
                let line: ImportLine =
                    serde_json::from_str(&text).map_err(|error| at_line(said(&error)))?;
                outline.add(number, offset, &line).map_err(at_line)?;
                for pattern in &line.may_change {
                    glob(pattern).map_err(|why| at_line(format!("`may_change`: {why}")))?;
                }
                check_spec(&line.into_spec()).map_err(|refusal| at_line(refusal.to_string()))?;
            }
            offset += len;
        }
    }

    fn add(&mut self, number: usize, offset: u64, line: &ImportLine) -> Result<(), String> {
        let generated;
        let name = match &line.id {
            Some(id) => id.as_str(),
            None => {
                generated = format!("line {number}");
                &generated
            }
        };
        check_dependencies(&line.depends_on)?;
        for on in &line.depends_on {
            let on = self.number(on.as_str());
            self.sorted &= self.defined[on as usize] > 0;
            self.needs.push(on);
        }
        let name_number = self.number(name);
        if self.defined[name_number as usize] > 0 {
            let first = self.defined[name_number as usize];
            return Err(format!("`{name}` is defined a second time; the first is line {first}"));
        }
        self.defined[name_number as usize] = number as u32;
        self.lines.push(offset);
        self.line_names.push(name_number);
        self.ends.push(self.needs.len() as u32);
        Ok(())
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.defined.len() as u32;
        self.names.insert(name.into(), number);
        self.defined.push(0);
        number
    }

    fn needs_of(&self, line: usize) -> &[u32] {
        let start = if line == 0 { 0 } else { self.ends[line - 1] };
        &self.needs[start as usize..self.ends[line] as usize]
    }

    /// Returns the number of a line in the input, starting at 1. Blank lines count.
    fn number_of(&self, line: usize) -> usize {
        self.defined[self.line_names[line] as usize] as usize
    }

    fn name(&self, number: u32) -> String {
        let found = self.names.iter().find(|(_, n)| **n == number);
        found.map_or_else(String::new, |(name, _)| name.to_string())
    }

    /// Checks that the project has every dependency that the input does not define.
    pub(super) fn check_missing(&self, project: &Project) -> Result<(), ImportError> {
        if self.defined.iter().all(|line| *line > 0) {
            return Ok(());
        }
        for line in 0..self.lines.len() {
            for &on in self.needs_of(line).iter().filter(|on| self.defined[**on as usize] == 0) {
                let name = self.name(on);
                let id = name.parse::<TaskId>().ok();
                let there = id.map(|id| project.read(|view| view.task(&id))).transpose()?;
                if there.flatten().is_none() {
                    let task = self.name(self.line_names[line]);
                    let line = self.number_of(line);
                    return Err(ImportError::Missing { line, task, on: name });
                }
            }
        }
        Ok(())
    }

    /// Returns the lines in an order in which dependencies come before their dependents.
    fn order(&self) -> Result<Vec<u32>, ImportError> {
        let lines = self.lines.len();
        if self.sorted {
            return Ok((0..lines as u32).collect());
        }
        let mut line_of = vec![u32::MAX; self.defined.len()];
        for (line, name) in self.line_names.iter().enumerate() {
            line_of[*name as usize] = line as u32;
        }
        let mut open = vec![0u32; lines];
        let mut dependents = vec![Vec::new(); lines];
        for (line, open) in open.iter_mut().enumerate() {
            for on in self.needs_of(line).iter().map(|on| line_of[*on as usize]) {
                if on != u32::MAX {
                    *open += 1;
                    dependents[on as usize].push(line as u32);
                }
            }
        }
        let mut order: Vec<u32> = (0..lines as u32).filter(|l| open[*l as usize] == 0).collect();
        let mut next = 0;
        while let Some(&line) = order.get(next) {
            next += 1;
            for &dependent in &dependents[line as usize] {
                open[dependent as usize] -= 1;
                if open[dependent as usize] == 0 {
                    order.push(dependent);
                }
            }
        }
        match order.len() == lines {
            true => Ok(order),
            false => Err(ImportError::Cycle(self.cycle(&open, &line_of))),
        }
    }

    /// Returns a cycle among the lines that are not ordered yet.
    ///
    /// It follows dependencies from one of these lines until a line comes twice.
    fn cycle(&self, open: &[u32], line_of: &[u32]) -> Vec<String> {
        let waits = |line: &u32| *line != u32::MAX && open[*line as usize] > 0;
        let Some(mut line) = (0..open.len() as u32).find(waits) else { return vec![] };
        let mut trail: Vec<u32> = Vec::new();
        let mut seen = HashMap::new();
        loop {
            if let Some(start) = seen.insert(line, trail.len()) {
                trail.push(line);
                let names = trail[start..].iter().map(|l| self.name(self.line_names[*l as usize]));
                return names.collect();
            }
            trail.push(line);
            let needs = self.needs_of(line as usize);
            match needs.iter().map(|on| line_of[*on as usize]).find(|on| waits(on)) {
                Some(on) => line = on,
                None => return vec![],
            }
        }
    }
}

fn check_dependencies(depends_on: &[TaskId]) -> Result<(), String> {
    if depends_on.len() > DEPENDENCIES_MAX {
        return Err(format!("{} dependencies; at most {DEPENDENCIES_MAX}", depends_on.len()));
    }
    match depends_on.iter().enumerate().find(|(i, on)| depends_on[..*i].contains(on)) {
        Some((_, on)) => Err(format!("depends on `{on}` twice")),
        None => Ok(()),
    }
}

/// The lines of an input, read in a given order.
pub(super) struct LinesInOrder<R> {
    input: BufReader<R>,
    offsets: Vec<u64>,
    numbers: Vec<u32>,
    order: Vec<u32>,
    next: usize,
    /// The current offset in the input. None before the first read.
    at: Option<u64>,
}

impl<R: Read + Seek> LinesInOrder<R> {
    /// Orders the lines of `input`, from which `outline` was read, with dependencies first.
    pub(super) fn new(input: BufReader<R>, outline: ImportOutline) -> Result<Self, ImportError> {
        let order = outline.order()?;
        let number = |name: &u32| outline.defined[*name as usize];
        let numbers = outline.line_names.iter().map(number).collect();
        Ok(LinesInOrder { input, offsets: outline.lines, numbers, order, next: 0, at: None })
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn next(&mut self) -> Result<Option<NumberedLine>, ImportError> {
        let Some(&line) = self.order.get(self.next) else { return Ok(None) };
        self.next += 1;
        let (number, offset) = (self.numbers[line as usize] as usize, self.offsets[line as usize]);
        match self.at {
            Some(at) => self.input.seek_relative(offset as i64 - at as i64)?,
            None => {
                self.input.seek(SeekFrom::Start(offset))?;
            }
        }
        let mut text = String::new();
        let len = self.input.read_line(&mut text)?;
        self.at = Some(offset + len as u64);
        let parsed = serde_json::from_str(&text);
        let parsed =
            parsed.map_err(|error| ImportError::Line { line: number, message: said(&error) })?;
        Ok(Some((number, parsed)))
    }
}
