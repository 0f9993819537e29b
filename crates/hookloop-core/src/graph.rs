//! The search for a path that an edge would close into a cycle.

use std::collections::HashMap;

/// Returns a path along dependencies from `from` to `to`, both included.
///
/// `dependencies` and `dependents` append a node's neighbours to the given list. Both ends are
/// searched in turn, one node at a time, until either is exhausted. So a new task (no dependents)
/// or a leaf (no dependencies) costs nothing, however large the rest of the graph is. No node is
/// visited twice, so the graph bounds the search.
pub fn path<E>(
    from: u64,
    to: u64,
    dependencies: impl Fn(u64, &mut Vec<u64>) -> Result<(), E>,
    dependents: impl Fn(u64, &mut Vec<u64>) -> Result<(), E>,
) -> Result<Option<Vec<u64>>, E> {
    if from == to {
        return Ok(Some(vec![from]));
    }
    let mut forward = SearchSide::new(from);
    let mut backward = SearchSide::new(to);
    let mut found = Vec::new();
    loop {
        let Some(node) = forward.take() else { return Ok(None) };
        dependencies(node, &mut found)?;
        if let Some(meeting) = forward.spread(node, &mut found, &backward) {
            return Ok(Some(joined(&forward, &backward, meeting)));
        }
        let Some(node) = backward.take() else { return Ok(None) };
        dependents(node, &mut found)?;
        if let Some(meeting) = backward.spread(node, &mut found, &forward) {
            return Ok(Some(joined(&forward, &backward, meeting)));
        }
    }
}

/// One side of the breadth-first search: the predecessor of each node, in the order reached.
struct SearchSide {
    came_from: HashMap<u64, u64>,
    queue: Vec<u64>,
    next: usize,
}

impl SearchSide {
    fn new(start: u64) -> SearchSide {
        SearchSide { came_from: HashMap::from([(start, start)]), queue: vec![start], next: 0 }
    }

    fn take(&mut self) -> Option<u64> {
        let node = self.queue.get(self.next).copied();
        self.next += 1;
        node
    }

    /// Adds the neighbours of `node`. Returns the first that `other` has also reached.
    fn spread(&mut self, node: u64, neighbours: &mut Vec<u64>, other: &SearchSide) -> Option<u64> {
        for next in neighbours.drain(..) {
            if self.came_from.contains_key(&next) {
                continue;
            }
            self.came_from.insert(next, node);
            self.queue.push(next);
            if other.came_from.contains_key(&next) {
                return Some(next);
            }
        }
        None
    }

    /// Returns the nodes from `node` back to this side's start.
    fn trail(&self, mut node: u64) -> Vec<u64> {
        let mut trail = vec![node];
        while let Some(&previous) = self.came_from.get(&node) {
            if previous == node {
                break;
            }
            trail.push(previous);
            node = previous;
        }
        trail
    }
}

fn joined(forward: &SearchSide, backward: &SearchSide, meeting: u64) -> Vec<u64> {
    let mut path = forward.trail(meeting);
    path.reverse();
    path.extend(backward.trail(meeting).into_iter().skip(1));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn check(edges: &[(u64, u64)], from: u64, to: u64, expected: Option<&[u64]>) {
        let on = |node: u64, out: &mut Vec<u64>| -> Result<(), Infallible> {
            out.extend(edges.iter().filter(|e| e.0 == node).map(|e| e.1));
            Ok(())
        };
        let of = |node: u64, out: &mut Vec<u64>| -> Result<(), Infallible> {
            out.extend(edges.iter().filter(|e| e.1 == node).map(|e| e.0));
            Ok(())
        };
        let Ok(found) = path(from, to, on, of);
        assert_eq!(found.as_deref(), expected, "{from} to {to} in {edges:?}");
    }

    #[test]
    fn a_dependency_path_is_found_if_there_is_one() {
        check(&[], 1, 1, Some(&[1]));
        check(&[], 1, 2, None);
        check(&[(1, 2)], 1, 2, Some(&[1, 2]));
        check(&[(1, 2)], 2, 1, None);
        check(&[(1, 2), (2, 3), (3, 4)], 1, 4, Some(&[1, 2, 3, 4]));
        check(&[(1, 2), (3, 4)], 1, 4, None);
        check(&[(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)], 1, 5, Some(&[1, 2, 4, 5]));
    }
}
