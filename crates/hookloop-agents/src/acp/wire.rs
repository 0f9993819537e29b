//! The messages to and from an agent, one a line.

use std::io;

use agent_client_protocol::Lines;
use futures_util::{Sink, Stream, sink, stream};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// The longest line that is accepted. A line may contain a whole file before and after a change.
pub(super) const LINE_MAX: usize = 64 * 1024 * 1024;
/// The most lines that wait to be read. After that, the agent waits.
pub(super) const LINES_WAITING: usize = 8;

/// A line of an agent, or the reason why there are no more.
pub(super) type AgentLine = io::Result<String>;

/// Splits an agent's output into lines, on the thread that reads it.
pub(super) struct LineSplitter {
    line: Vec<u8>,
    /// `None` once there is no reader.
    lines: Option<mpsc::Sender<AgentLine>>,
}

impl LineSplitter {
    pub(super) fn new(lines: mpsc::Sender<AgentLine>) -> LineSplitter {
        LineSplitter { line: Vec::new(), lines: Some(lines) }
    }

    /// Takes a piece of output. An empty piece ends it.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.lines.is_none() {
            return;
        }
        let mut parts = piece.split(|byte| *byte == b'\n');
        // The first part continues the current line, and the last part has no end yet.
        self.extend(parts.next().unwrap_or_default());
        for part in parts {
            self.pass();
            self.extend(part);
        }
        if piece.is_empty() {
            self.pass();
            self.lines = None;
        }
    }

    fn extend(&mut self, part: &[u8]) {
        if self.line.len() + part.len() <= LINE_MAX {
            self.line.extend_from_slice(part);
            return;
        }
        self.line = Vec::new();
        if let Some(lines) = self.lines.take() {
            let error = io::Error::other(format!("a line of it is longer than {LINE_MAX} bytes"));
            // Without a receiver the turn is over.
            let _ = lines.blocking_send(Err(error));
        }
    }

    /// Passes the line on. Agents' runtimes print warnings between messages; those are not objects and are skipped.
    fn pass(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Some(lines) = &self.lines else { return };
        if line.trim_ascii_start().first() == Some(&b'{') {
            let line = String::from_utf8_lossy(&line).into_owned();
            if lines.blocking_send(Ok(line)).is_err() {
                self.lines = None;
            }
        }
    }
}

/// Returns both directions in the form that the protocol's client needs.
pub(super) fn transport(
    pipe: pipe::Sender,
    lines: mpsc::Receiver<AgentLine>,
) -> Lines<impl Sink<String, Error = io::Error> + Send, impl Stream<Item = AgentLine> + Send> {
    let incoming = stream::unfold(lines, async |mut lines| {
        // The client reads all available lines before it does anything else, unless it yields here.
        tokio::task::yield_now().await;
        lines.recv().await.map(|line| (line, lines))
    });
    let outgoing = sink::unfold(pipe, async |pipe, line: String| {
        let mut line = line.into_bytes();
        line.push(b'\n');
        write(&pipe, &line).await?;
        Ok(pipe)
    });
    Lines::new(outgoing, incoming)
}

async fn write(pipe: &pipe::Sender, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        pipe.writable().await?;
        match pipe.try_write(rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::{LINE_MAX, LineSplitter};

    fn cut(pieces: &[&[u8]]) -> Vec<Result<String, String>> {
        let (sender, mut receiver) = mpsc::channel(16);
        let mut cutter = LineSplitter::new(sender);
        pieces.iter().for_each(|piece| cutter.push(piece));
        let next = || receiver.try_recv().ok();
        std::iter::from_fn(next).map(|line| line.map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn lines_are_joined_from_pieces_of_any_size() {
        let text = b"{\"a\":1}\n\nwarning: old\n {\"b\":\"\xc3\xa4\"}\r\n{\"c\":3}";
        let expected = ["{\"a\":1}", " {\"b\":\"ä\"}\r", "{\"c\":3}"].map(|it| Ok(it.to_owned()));
        for size in 1..=text.len() {
            let mut pieces: Vec<&[u8]> = text.chunks(size).collect();
            pieces.push(b"");
            assert_eq!(cut(&pieces), expected, "in pieces of {size}");
        }
        assert_eq!(cut(&[b"{\"a\":1}\n{"]), expected[..1], "what has no end may go on");
    }

    #[test]
    fn a_line_over_the_limit_is_an_error() {
        let piece = vec![b'{'; LINE_MAX / 4];
        let lines = cut(&[&piece, &piece, &piece, &piece, b"{", b"\n{}\n", b""]);
        assert_eq!(lines, [Err(format!("a line of it is longer than {LINE_MAX} bytes"))]);
    }
}
