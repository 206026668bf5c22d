//! The three pipes of a child: one is fed while the two others are read.

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::process::Child;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::capture::{Captured, Collector};
use super::sigpipe;
use super::spec::{OutputStream, ProcessSpec, Stdin};

/// The size of the buffer that the output passes through, and of a pipe as the system makes it.
const CHUNK: usize = 64 * 1024;
/// The most that is taken out of a pipe without waiting: more than a pipe holds by default, but not without end if a
/// process that left the group goes on writing.
const SWEEP_LIMIT: usize = 2 * 1024 * 1024;

/// What [`Pipes::progress`] stopped at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Everything is written and both outputs are at their end.
    Closed,
    /// More arrived on this stream than may.
    Overflowed(OutputStream),
}

/// The ends that we hold of the pipes of a child.
#[derive(Debug)]
pub(super) struct Pipes {
    feed: Option<(ChildStdin, Bytes)>,
    stdout: Reader<ChildStdout>,
    stderr: Reader<ChildStderr>,
    buffer: Box<[u8]>,
    overflow_told: bool,
}

impl Pipes {
    /// Takes the pipes of a child that was just started and writes what fits into stdin without waiting.
    pub(super) fn new(child: &mut Child, spec: &ProcessSpec) -> io::Result<Self> {
        let feed = match (child.stdin.take(), &spec.stdin) {
            (Some(pipe), Stdin::Bytes(payload)) => start_feeding(pipe, payload.clone())?,
            _ => None,
        };
        let stdout = child.stdout.take().map(ChildStdout::from_std).transpose()?;
        let stderr = child.stderr.take().map(ChildStderr::from_std).transpose()?;
        Ok(Self {
            feed,
            stdout: Reader { pipe: stdout, collector: Collector::new(spec.stdout) },
            stderr: Reader { pipe: stderr, collector: Collector::new(spec.stderr) },
            buffer: vec![0; CHUNK].into_boxed_slice(),
            overflow_told: false,
        })
    }

    /// Whether there is nothing left to write or to read.
    pub(super) fn is_closed(&self) -> bool {
        self.feed.is_none() && self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    /// Moves bytes until everything is done or a stream overflows, which is told once. Can be dropped and called again.
    pub(super) async fn progress(&mut self) -> Progress {
        poll_fn(|context| self.poll(context)).await
    }

    /// Moves bytes until everything is done.
    pub(super) async fn until_closed(&mut self) {
        while self.progress().await != Progress::Closed {}
    }

    /// Closes stdin, whatever is left to write.
    pub(super) fn stop_feeding(&mut self) {
        self.feed = None;
    }

    /// Takes what is in the pipes without waiting, so that nothing the child wrote before it ended is lost, however
    /// late this task runs.
    pub(super) fn sweep(&mut self) {
        self.stdout.sweep(&mut self.buffer);
        self.stderr.sweep(&mut self.buffer);
    }

    /// The stream that ran over its cap.
    pub(super) fn overflowed(&self) -> Option<OutputStream> {
        if self.stdout.collector.is_overflowed() {
            Some(OutputStream::Stdout)
        } else if self.stderr.collector.is_overflowed() {
            Some(OutputStream::Stderr)
        } else {
            None
        }
    }

    /// What was kept of stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.collector.finish(), self.stderr.collector.finish())
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Progress> {
        self.poll_feed(context);
        self.stdout.poll(context, &mut self.buffer);
        self.stderr.poll(context, &mut self.buffer);
        if !self.overflow_told
            && let Some(stream) = self.overflowed()
        {
            self.overflow_told = true;
            return Poll::Ready(Progress::Overflowed(stream));
        }
        if self.is_closed() { Poll::Ready(Progress::Closed) } else { Poll::Pending }
    }

    fn poll_feed(&mut self, context: &mut Context<'_>) {
        while let Some((pipe, payload)) = &mut self.feed {
            match sigpipe::held_back(|| Pin::new(&mut *pipe).poll_write(context, payload)) {
                Poll::Pending => return,
                Poll::Ready(Ok(written)) if written < payload.remaining() => payload.advance(written),
                // All written, or the child does not want the rest, which is its right.
                Poll::Ready(_) => self.feed = None,
            }
        }
    }
}

/// Writes what fits into the pipe; a usual payload fits whole, and then the runtime never hears of the pipe.
fn start_feeding(pipe: std::process::ChildStdin, mut payload: Bytes) -> io::Result<Option<(ChildStdin, Bytes)>> {
    rustix::io::ioctl_fionbio(&pipe, true)?;
    while payload.has_remaining() {
        let write = || Poll::Ready(rustix::io::write(&pipe, &payload).map_err(io::Error::from));
        match sigpipe::held_back(write) {
            Poll::Ready(Ok(written)) => payload.advance(written),
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                return Ok(Some((ChildStdin::from_std(pipe)?, payload)));
            }
            _ => break,
        }
    }
    Ok(None)
}

/// One output pipe with what came out of it.
#[derive(Debug)]
struct Reader<P> {
    /// `None` at the end of the stream.
    pipe: Option<P>,
    collector: Collector,
}

impl<P: AsyncRead + AsFd + Unpin> Reader<P> {
    fn poll(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) {
        while let Some(pipe) = &mut self.pipe {
            let mut read = ReadBuf::new(buffer);
            match Pin::new(pipe).poll_read(context, &mut read) {
                Poll::Pending => return,
                Poll::Ready(Ok(())) if !read.filled().is_empty() => self.collector.take(read.filled()),
                Poll::Ready(_) => self.pipe = None,
            }
        }
    }

    fn sweep(&mut self, buffer: &mut [u8]) {
        let mut swept = 0;
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut *buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => {
                    self.collector.take(&buffer[..count]);
                    swept += count;
                    if swept >= SWEEP_LIMIT {
                        return;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.pipe = None,
            }
        }
    }
}
