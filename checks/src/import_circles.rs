//! Arrows between sibling modules, and those that close a circle.
//!
//! An arrow leads from one module to a sibling if a file below the first names a path that resolves
//! to the sibling or a module below it. A path through a re-export counts for the re-exporting and
//! the defining module.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use crate::module_tree::{ModuleId, SourceIndex, TreeId};
use crate::path_mentions::PathMention;
use crate::resolver::PathResolver;

/// Maximum number of passes that improve an order of siblings.
const ORDER_PASSES: usize = 100;

/// A path in a file that leads from one module to a sibling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleArrow {
    pub crate_label: String,
    pub parent: Vec<String>,
    pub from: String,
    pub to: String,
    pub file: PathBuf,
    pub line: usize,
    pub path: String,
}

impl fmt::Display for ModuleArrow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full = |name: &str| {
            let parts = self.parent.iter().map(String::as_str).chain([name]);
            parts.collect::<Vec<_>>().join("::")
        };
        let ModuleArrow { crate_label, file, line, path, .. } = self;
        let (from, to) = (full(&self.from), full(&self.to));
        write!(f, "{crate_label}: {from} → {to}: {}:{line} names {path}", file.display())
    }
}

/// The parent, the sibling that an arrow comes from, and the one that it leads to.
type SiblingPair = (Vec<String>, String, String);

/// Returns every arrow between siblings of a target.
pub fn sibling_arrows(index: &SourceIndex, tree: TreeId) -> Vec<ModuleArrow> {
    let resolver = PathResolver::new(index);
    let mut arrows = BTreeSet::new();
    for id in index.modules_of(tree) {
        let module = index.module(id);
        for mention in &module.mentions {
            for (parent, from, to) in mentioned_pairs(index, &resolver, id, mention) {
                arrows.insert(ModuleArrow {
                    crate_label: index.tree(tree).label.clone(),
                    parent,
                    from,
                    to,
                    file: module.file.clone(),
                    line: mention.line,
                    path: mention.segments.join("::"),
                });
            }
        }
    }
    arrows.into_iter().collect()
}

/// Returns the pairs that a mention adds. An imported name adds no pair that its import adds.
fn mentioned_pairs(
    index: &SourceIndex,
    resolver: &PathResolver<'_>,
    id: ModuleId,
    mention: &PathMention,
) -> BTreeSet<SiblingPair> {
    let Some(first) = mention.segments.first() else { return BTreeSet::new() };
    let is_explicit = resolver.is_explicit(id, first);
    if mention.segments.len() == 1 && is_explicit && !mention.is_import {
        return BTreeSet::new();
    }
    let mut pairs = pairs_of(index, resolver, id, &mention.segments);
    if !mention.is_import && is_explicit {
        let imported = pairs_of(index, resolver, id, &mention.segments[..1]);
        pairs.retain(|pair| !imported.contains(pair));
    }
    pairs
}

fn pairs_of(
    index: &SourceIndex,
    resolver: &PathResolver<'_>,
    id: ModuleId,
    segments: &[String],
) -> BTreeSet<SiblingPair> {
    let from = index.module(id);
    let targets = resolver.resolve(id, segments);
    let modules = targets.iter().flat_map(|target| target.via.iter().chain([&target.module]));
    let here = modules.map(|id| index.module(*id)).filter(|module| module.tree == from.tree);
    here.filter_map(|module| sibling_pair(&from.path, &module.path)).collect()
}

/// Returns the siblings above two modules; none if one is above the other.
fn sibling_pair(from: &[String], to: &[String]) -> Option<SiblingPair> {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let (first, second) = (from.get(common)?, to.get(common)?);
    Some((from[..common].to_vec(), first.clone(), second.clone()))
}

/// Returns a small set of arrows without which no circle is left.
pub fn back_arrows(arrows: &[ModuleArrow]) -> Vec<ModuleArrow> {
    let mut by_parent: BTreeMap<&[String], Vec<&ModuleArrow>> = BTreeMap::new();
    for arrow in arrows {
        by_parent.entry(&arrow.parent).or_default().push(arrow);
    }
    let mut back = Vec::new();
    for arrows in by_parent.into_values() {
        let graph = SiblingGraph::new(&arrows);
        let order = graph.best_order();
        let is_back = |arrow: &&ModuleArrow| {
            let place = |name: &str| order.iter().position(|node| graph.names[*node] == name);
            graph.is_in_circle(&arrow.from, &arrow.to) && place(&arrow.from) > place(&arrow.to)
        };
        back.extend(arrows.into_iter().filter(is_back).cloned());
    }
    back
}

/// The siblings below one parent, and the number of arrows between each two.
struct SiblingGraph<'a> {
    names: Vec<&'a str>,
    counts: Vec<Vec<usize>>,
    /// Whether a node reaches another, over any number of arrows.
    reaches: Vec<Vec<bool>>,
}

impl<'a> SiblingGraph<'a> {
    fn new(arrows: &[&'a ModuleArrow]) -> SiblingGraph<'a> {
        let ends = arrows.iter().flat_map(|arrow| [arrow.from.as_str(), arrow.to.as_str()]);
        let names: Vec<&str> = ends.collect::<BTreeSet<_>>().into_iter().collect();
        let size = names.len();
        let mut counts = vec![vec![0; size]; size];
        for arrow in arrows {
            let place = |name: &str| names.binary_search(&name).ok();
            if let (Some(from), Some(to)) = (place(&arrow.from), place(&arrow.to)) {
                counts[from][to] += 1;
            }
        }
        let mut reaches: Vec<Vec<bool>> =
            counts.iter().map(|row| row.iter().map(|count| *count > 0).collect()).collect();
        for middle in 0..size {
            let onwards = reaches[middle].clone();
            for row in reaches.iter_mut().filter(|row| row[middle]) {
                for (reached, onward) in row.iter_mut().zip(&onwards) {
                    *reached |= onward;
                }
            }
        }
        SiblingGraph { names, counts, reaches }
    }

    fn is_in_circle(&self, from: &str, to: &str) -> bool {
        let place = |name: &str| self.names.binary_search(&name);
        match (place(from), place(to)) {
            (Ok(from), Ok(to)) => self.reaches[to][from],
            _ => false,
        }
    }

    /// Returns the number of arrows between two nodes, or 0 if they are not in one circle.
    fn weight(&self, from: usize, to: usize) -> usize {
        if self.reaches[to][from] { self.counts[from][to] } else { 0 }
    }

    /// Returns the best of the orders that the search finds from several first orders.
    fn best_order(&self) -> Vec<usize> {
        let size = self.names.len();
        let surplus = |node: usize| {
            let out: usize = (0..size).map(|other| self.weight(node, other)).sum();
            let into: usize = (0..size).map(|other| self.weight(other, node)).sum();
            out as i64 - into as i64
        };
        let plain: Vec<usize> = (0..size).collect();
        let reversed: Vec<usize> = (0..size).rev().collect();
        let mut sorted = plain.clone();
        sorted.sort_by_key(|node| std::cmp::Reverse(surplus(*node)));
        let improved = [sorted, plain, reversed].map(|order| self.improve(order));
        let cost = |order: &Vec<usize>| self.cost(order);
        improved.into_iter().min_by_key(cost).unwrap_or_default()
    }

    fn cost(&self, order: &[usize]) -> usize {
        let pairs = order.iter().enumerate();
        pairs.flat_map(|(at, from)| order[..at].iter().map(|to| self.weight(*from, *to))).sum()
    }

    /// Moves each node to its best place, until no move removes a back arrow.
    fn improve(&self, mut order: Vec<usize>) -> Vec<usize> {
        for _ in 0..ORDER_PASSES {
            let mut is_better = false;
            for node in 0..self.names.len() {
                is_better |= self.place_best(&mut order, node);
            }
            if !is_better {
                break;
            }
        }
        order
    }

    /// Moves one node to its best place. Returns whether that removes a back arrow.
    fn place_best(&self, order: &mut Vec<usize>, node: usize) -> bool {
        let Some(at) = order.iter().position(|other| *other == node) else { return false };
        order.remove(at);
        let mut cost: usize = order.iter().map(|other| self.weight(*other, node)).sum();
        let mut costs = vec![cost];
        for other in order.iter() {
            cost = cost + self.weight(node, *other) - self.weight(*other, node);
            costs.push(cost);
        }
        let best = (0..costs.len()).min_by_key(|place| costs[*place]).unwrap_or(at);
        let is_better = costs[best] < costs[at];
        order.insert(if is_better { best } else { at }, node);
        is_better
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(source: &str) -> Vec<String> {
        let mut index = SourceIndex::default();
        let tree = index.load_text("top", source).unwrap();
        let back = back_arrows(&sibling_arrows(&index, tree));
        back.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_found_with_the_fewest_arrows_to_cut() {
        let source = "
mod a {
    use crate::b::X;
    use crate::b::Y;
    fn f() { crate::b::g() }
}
mod b {
    use super::a::Z;
}";
        assert_eq!(back(source), ["top: b → a: top.rs:8 names super::a::Z"]);
    }

    #[test]
    fn a_circle_over_three_modules_is_found() {
        let source = "
mod a { use crate::b::X; use crate::b::Y; }
mod b { use crate::c::X; use crate::c::Y; }
mod c { fn f() { vec![crate::a::g()]; } }";
        assert_eq!(back(source), ["top: c → a: top.rs:4 names crate::a::g"]);
    }

    #[test]
    fn a_circle_below_one_parent_is_found_through_its_re_export() {
        let source = "
mod a {
    pub use self::b::X;
    mod b { pub struct X; use super::c; use super::c::Y; }
    mod c { use crate::a::X; }
}";
        assert_eq!(back(source), ["top: a::c → a::b: top.rs:5 names crate::a::X"]);
    }

    #[test]
    fn a_circle_through_a_glob_is_found() {
        let source = "
mod a {
    use self::b::X;
    mod b { pub struct X; use super::c::Y; use super::c::Z; }
    mod c { use super::*; struct W(X); }
}";
        assert_eq!(back(source), ["top: a::c → a::b: top.rs:5 names X"]);
    }

    #[test]
    fn arrows_in_one_direction_and_to_parents_are_no_circle() {
        let source = "
struct Top;
mod a { use crate::b::X; use crate::Top; }
mod b { pub use self::c::X; mod c { use super::super::Top; pub struct X; } }
fn f() { a::g() }";
        assert_eq!(back(source), [""; 0]);
    }

    #[test]
    fn imports_of_test_code_form_no_circle() {
        let source = "
mod a { use crate::b::X; }
mod b { #[cfg(test)] mod tests { use crate::a::Y; } #[cfg(test)] fn f() { crate::a::g() } }";
        assert_eq!(back(source), [""; 0]);
    }
}
