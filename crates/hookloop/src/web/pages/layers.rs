//! Where the boxes of a graph are drawn: in layers, each right of all that it needs, in an order that lets few lines
//! cross. A line has a place in each layer that it crosses, so that lines go around boxes.

use std::collections::HashMap;

/// How often layers are put in order again.
const SWEEPS: usize = 6;
/// Places that lines have on their way, at most; lines that find none are drawn straight.
const WAYPOINTS_MAX: usize = 2_000;

/// The sizes of boxes and gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxSizes {
    pub(super) width: u64,
    pub(super) height: u64,
    /// Between two layers, and between two boxes of one.
    pub(super) across: u64,
    pub(super) down: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlacedGraph {
    /// The upper left corner of each box.
    pub(super) boxes: Vec<(u64, u64)>,
    /// For each line the points that it goes through: from a box's right side to another's left.
    pub(super) lines: Vec<Vec<(u64, u64)>>,
    pub(super) width: u64,
    pub(super) height: u64,
}

/// Places `count` boxes with lines from dependency to dependent. Lines that lead back are left out: there are none in a
/// graph without cycles.
pub(super) fn place(count: usize, lines: &[(usize, usize)], sizes: BoxSizes) -> PlacedGraph {
    let layer = layers(count, lines);
    let depth = layer.iter().copied().max().map_or(0, |last| last + 1);
    let mut graph = LayeredGraph::new(count, depth, &layer);
    let ways: Vec<Vec<usize>> = lines.iter().map(|line| graph.lead(*line, &layer)).collect();
    graph.put_in_order();
    let y = graph.heights(sizes);
    let top = |node: usize| y[node];
    let middle = |node: usize| y[node] + sizes.height / 2;
    let x = |layer: usize| layer as u64 * (sizes.width + sizes.across);
    let line = |way: &Vec<usize>| {
        let last = way.len().saturating_sub(1);
        let mut points = Vec::new();
        for (i, node) in way.iter().enumerate() {
            let left = x(graph.layer_of[*node]);
            if i > 0 {
                points.push((left, middle(*node)));
            }
            if i < last {
                points.push((left + sizes.width, middle(*node)));
            }
        }
        points
    };
    PlacedGraph {
        boxes: (0..count).map(|node| (x(layer[node]), top(node))).collect(),
        lines: ways.iter().map(line).collect(),
        width: (depth as u64 * (sizes.width + sizes.across)).saturating_sub(sizes.across),
        height: y.iter().map(|y| y + sizes.height).max().unwrap_or(0),
    }
}

/// How many boxes are on the longest way to each.
fn layers(count: usize, lines: &[(usize, usize)]) -> Vec<usize> {
    let mut layer = vec![0; count];
    let mut open = vec![0; count];
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (from, to) in lines {
        open[*to] += 1;
        after[*from].push(*to);
    }
    let mut free: Vec<usize> = (0..count).filter(|node| open[*node] == 0).collect();
    while let Some(node) = free.pop() {
        for next in &after[node] {
            layer[*next] = layer[*next].max(layer[node] + 1);
            open[*next] -= 1;
            if open[*next] == 0 {
                free.push(*next);
            }
        }
    }
    layer
}

/// Boxes and the places of lines, in layers.
struct LayeredGraph {
    layers: Vec<Vec<usize>>,
    layer_of: Vec<usize>,
    /// Neighbours in the layer before, and in the one after.
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    waypoints: usize,
}

impl LayeredGraph {
    fn new(count: usize, depth: usize, layer: &[usize]) -> LayeredGraph {
        let mut layers = vec![Vec::new(); depth];
        for (node, layer) in layer.iter().enumerate() {
            layers[*layer].push(node);
        }
        let none = || vec![Vec::new(); count];
        LayeredGraph {
            layers,
            layer_of: layer.to_vec(),
            before: none(),
            after: none(),
            waypoints: 0,
        }
    }

    /// The way of a line, by a place in each layer between its ends.
    fn lead(&mut self, (from, to): (usize, usize), layer: &[usize]) -> Vec<usize> {
        let first = layer[from];
        let last = layer[to];
        if first >= last {
            return Vec::new();
        }
        let mut way = vec![from];
        let needed = last - first - 1;
        if self.waypoints + needed <= WAYPOINTS_MAX {
            self.waypoints += needed;
            for layer in first + 1..last {
                let node = self.layer_of.len();
                self.layer_of.push(layer);
                self.before.push(Vec::new());
                self.after.push(Vec::new());
                self.layers[layer].push(node);
                way.push(node);
            }
        }
        way.push(to);
        for pair in way.windows(2) {
            self.after[pair[0]].push(pair[1]);
            self.before[pair[1]].push(pair[0]);
        }
        way
    }

    /// Each is put where its neighbours are on average, from left to right and back.
    fn put_in_order(&mut self) {
        for sweep in 0..SWEEPS {
            let mut place = HashMap::new();
            for layer in &self.layers {
                place.extend(layer.iter().enumerate().map(|(i, node)| (*node, i)));
            }
            let forward = sweep % 2 == 0;
            let order: Vec<usize> = if forward {
                (0..self.layers.len()).collect()
            } else {
                (0..self.layers.len()).rev().collect()
            };
            for layer in order {
                let neighbours = if forward { &self.before } else { &self.after };
                let mean = |node: &usize| {
                    let places = neighbours[*node].iter().filter_map(|near| place.get(near));
                    let (sum, count) =
                        places.fold((0, 0), |(sum, count), place| (sum + place, count + 1));
                    // A box without neighbours keeps its position. In thousandths: a place is a whole number.
                    (sum * 1_000_usize).checked_div(count).unwrap_or(place[node] * 1_000)
                };
                let mut nodes = self.layers[layer].clone();
                nodes.sort_by_cached_key(mean);
                place.extend(nodes.iter().enumerate().map(|(i, node)| (*node, i)));
                self.layers[layer] = nodes;
            }
        }
    }

    /// Returns the vertical position of each box: near its dependencies, below the box above it.
    fn heights(&self, sizes: BoxSizes) -> Vec<u64> {
        let mut y = vec![0; self.layer_of.len()];
        for layer in &self.layers {
            let mut free = 0;
            for node in layer {
                let near = &self.before[*node];
                let wanted =
                    near.iter().map(|near| y[*near]).sum::<u64>() / (near.len().max(1) as u64);
                y[*node] = wanted.max(free);
                free = y[*node] + sizes.height + sizes.down;
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: BoxSizes = BoxSizes { width: 100, height: 20, across: 50, down: 10 };

    /// No two boxes share a place, and every line goes to the right.
    fn check(count: usize, lines: &[(usize, usize)]) -> PlacedGraph {
        let placed = place(count, lines, SIZES);
        assert_eq!((placed.boxes.len(), placed.lines.len()), (count, lines.len()));
        for (i, one) in placed.boxes.iter().enumerate() {
            assert!(one.0 + 100 <= placed.width && one.1 + 20 <= placed.height);
            for other in &placed.boxes[..i] {
                assert!(one.0 != other.0 || one.1.abs_diff(other.1) >= 30, "{placed:?}");
            }
        }
        for line in &placed.lines {
            assert!(line.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{line:?}");
        }
        placed
    }

    #[test]
    fn task_boxes_are_right_of_their_dependencies() {
        assert_eq!(check(0, &[]), PlacedGraph::default());
        let placed = check(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]);
        let columns: Vec<u64> = placed.boxes.iter().map(|(x, _)| x / 150).collect();
        assert_eq!(columns, [0, 1, 2, 0]);
        // The long line has a place in the middle layer, which no box has.
        let middle = placed.lines[2][1];
        assert!(middle.0 == 150 && middle.1.abs_diff(placed.boxes[1].1 + 10) >= 30, "{placed:?}");
    }

    #[test]
    fn avoidable_crossings_of_lines_are_avoided() {
        let placed = check(4, &[(0, 3), (1, 2)]);
        let zero = placed.boxes[0].1;
        let one = placed.boxes[1].1;
        let two = placed.boxes[2].1;
        let three = placed.boxes[3].1;
        assert_eq!(zero < one, three < two, "{placed:?}");
    }

    #[test]
    fn a_graph_of_120_boxes_is_placed() {
        let lines: Vec<(usize, usize)> = (0..120)
            .flat_map(|to| {
                (0..to).filter(move |from| (from * 7 + to) % 11 == 0).map(move |from| (from, to))
            })
            .collect();
        check(120, &lines);
    }

    /// Any graph is drawn, in bounded time.
    #[test]
    fn a_graph_with_a_cycle_is_placed() {
        let placed = place(2, &[(0, 1), (1, 0)], SIZES);
        assert_eq!(placed.boxes.len(), 2);
    }
}
