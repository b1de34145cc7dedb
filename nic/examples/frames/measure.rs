//! The measurement itself.

use std::error::Error;
use std::io;
use std::os::fd::AsRawFd;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use uroce_nic::testing::VethPair;
use uroce_nic::{AfXdp, Nic, ROCE_PORT, XdpAttach, XdpConfig};

const SIZES: [usize; 3] = [74, 1082, 4170];
const FRAMES: u64 = 1_000_000;
/// Frames on the way at most: a veth pair holds 256.
const WINDOW: u64 = 128;
/// Polls of both ends without a frame after which one must have been lost.
const PATIENCE: u32 = 10_000_000;
/// Frames answered by one small frame.
const ANSWER_EVERY: u64 = 32;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Without arguments measures everything; with `receive <attach> <size>` is the child that receives.
pub(super) fn run(arguments: Vec<String>) -> Outcome<()> {
    if let [role, attach, size] = arguments.as_slice()
        && role == "receive"
    {
        return receive(attach_of(attach), size.parse()?);
    }
    println!(
        "{:>6} {:>8} {:>14} {:>12} {:>9} {:>16}",
        "bytes", "attached", "ends", "frames/s", "Gb/s", "CPU ns/frame"
    );
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        for size in SIZES {
            one_thread(attach, size)?;
            two_processes(attach, size)?;
        }
    }
    Ok(())
}

fn attach_of(text: &str) -> XdpAttach {
    if text == "native" { XdpAttach::Native } else { XdpAttach::Generic }
}

fn pair() -> Outcome<VethPair> {
    VethPair::new("frames", 9000).map_err(|reason| reason.to_string().into())
}

fn open(attach: XdpAttach) -> Outcome<AfXdp> {
    let config = XdpConfig { attach: Some(attach), ..XdpConfig::default() };
    Ok(AfXdp::open(VethPair::INTERFACE, 0, &config)?)
}

/// Both ends polled in turn by this thread: the CPU time is that of both.
fn one_thread(attach: XdpAttach, size: usize) -> Outcome<()> {
    let pair = pair()?;
    let mut left = pair.left.inside(|| open(attach))?;
    let mut right = pair.right.inside(|| open(attach))?;
    let frame = frame(size);
    let (started, cpu) = (now(), cpu_time()?);
    let (mut sent, mut received, mut idle) = (0, 0, 0);
    while received < FRAMES {
        sent += send(&mut left, &frame, (FRAMES - sent).min(WINDOW + received - sent))?;
        let got = right.rx(64, &mut |_| ())? as u64;
        received += got;
        idle = if got == 0 { idle + 1 } else { 0 };
        if idle > PATIENCE {
            return Err(format!("a frame was lost: {:?} {:?}", left.stats(), right.stats()).into());
        }
    }
    report(attach, size, "one thread", started, &[cpu_time()?.since(cpu)]);
    losses(&[&left, &right]);
    Ok(())
}

/// Each end in a process of its own that sleeps while it has nothing to do.
fn two_processes(attach: XdpAttach, size: usize) -> Outcome<()> {
    let pair = pair()?;
    let mut left = pair.left.inside(|| open(attach))?;
    let mut child = spawn(&pair, attach, size)?;
    wait_for_peer(&mut left)?;
    let frame = frame(size);
    let (started, cpu) = (now(), cpu_time()?);
    let (mut sent, mut answered) = (0, 0);
    while answered < FRAMES {
        let now = send(&mut left, &frame, (FRAMES - sent).min(WINDOW + answered - sent))?;
        let got = left.rx(64, &mut |_| answered += ANSWER_EVERY)?;
        sent += now;
        if now == 0 && got == 0 && !sleep(&left)? {
            return Err(format!("a frame was lost: {:?}", left.stats()).into());
        }
    }
    let own = cpu_time()?.since(cpu);
    let theirs = child_time(&mut child)?;
    report(attach, size, "two processes", started, &[own, theirs]);
    losses(&[&left]);
    Ok(())
}

/// The child: tells that it is there, then answers every so many frames.
fn receive(attach: XdpAttach, size: usize) -> Outcome<()> {
    let mut nic = open(attach)?;
    let answer = frame(74);
    send(&mut nic, &answer, 1)?;
    let (mut received, mut answered) = (0, 0);
    while answered < FRAMES {
        let got = nic.rx(64, &mut |frame| assert_eq!(frame.len(), size))? as u64;
        received += got;
        let owed = (received - answered) / ANSWER_EVERY;
        answered += ANSWER_EVERY * send(&mut nic, &answer, owed)?;
        if got == 0 && !sleep(&nic)? {
            return Err(format!("a frame was lost: {:?}", nic.stats()).into());
        }
    }
    losses(&[&nic]);
    Ok(())
}

fn spawn(pair: &VethPair, attach: XdpAttach, size: usize) -> Outcome<Child> {
    let program = std::env::current_exe()?;
    let child = pair.right.inside(|| {
        Command::new(program).arg("receive").arg(attach.to_string()).arg(size.to_string()).spawn()
    })?;
    Ok(child)
}

fn wait_for_peer(nic: &mut AfXdp) -> Outcome<()> {
    if sleep(nic)? && nic.rx(1, &mut |_| ())? > 0 {
        return Ok(());
    }
    Err("the receiving process does not come up".into())
}

fn send(nic: &mut AfXdp, frame: &[u8], count: u64) -> io::Result<u64> {
    let sent = nic.tx(count.min(64) as usize, &mut |to| {
        to[..frame.len()].copy_from_slice(frame);
        Some(frame.len())
    })?;
    nic.flush()?;
    Ok(sent as u64)
}

/// Sleeps until a frame arrives; false when none came for five seconds.
fn sleep(nic: &AfXdp) -> io::Result<bool> {
    let fd = nic.fd().expect("AF_XDP has a descriptor").as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one pollfd on the stack, and the count says one.
    let result = unsafe { libc::poll(&mut poll, 1, 5000) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result > 0) }
}

fn frame(size: usize) -> Vec<u8> {
    let (ip, udp) = ((size - 14) as u16, (size - 34) as u16);
    let mut frame = [VethPair::RIGHT_MAC, VethPair::LEFT_MAC].concat();
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend(ip.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0xc0, 0]);
    frame.extend(ROCE_PORT.to_be_bytes());
    frame.extend(udp.to_be_bytes());
    frame.resize(size, 0x5a);
    frame
}

fn report(attach: XdpAttach, size: usize, ends: &str, started: Instant, cpu: &[CpuTime]) {
    let seconds = now().duration_since(started).as_secs_f64();
    let (rate, bits) = (FRAMES as f64 / seconds, (FRAMES * size as u64 * 8) as f64);
    let cpu: Vec<_> = cpu.iter().map(CpuTime::per_frame).collect();
    let attach = attach.to_string();
    println!(
        "{size:>6} {attach:>8} {ends:>14} {rate:>12.0} {:>9.1}  {}",
        bits / seconds / 1e9,
        cpu.join(", ")
    );
}

fn losses(ends: &[&AfXdp]) {
    for end in ends.iter().filter(|end| end.stats().dropped() > 0) {
        println!("       frames were lost: {:?}", end.stats());
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time spent in our own code and in the kernel for us.
#[derive(Clone, Copy)]
struct CpuTime {
    own: Duration,
    kernel: Duration,
}

impl CpuTime {
    fn since(self, before: Self) -> Self {
        Self { own: self.own - before.own, kernel: self.kernel - before.kernel }
    }

    fn per_frame(&self) -> String {
        let nanos = |time: Duration| time.as_nanos() as u64 / FRAMES;
        format!("{} + {}", nanos(self.own), nanos(self.kernel))
    }
}

fn cpu_time() -> io::Result<CpuTime> {
    usage(libc::RUSAGE_SELF)
}

/// CPU time of a child that ends by itself.
fn child_time(child: &mut Child) -> io::Result<CpuTime> {
    let before = usage(libc::RUSAGE_CHILDREN)?;
    child.wait()?;
    Ok(usage(libc::RUSAGE_CHILDREN)?.since(before))
}

fn usage(who: libc::c_int) -> io::Result<CpuTime> {
    // SAFETY: a structure of integers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to the structure above, which outlives the call.
    if unsafe { libc::getrusage(who, &mut usage) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |value: libc::timeval| Duration::new(value.tv_sec as u64, value.tv_usec as u32 * 1000);
    Ok(CpuTime { own: time(usage.ru_utime), kernel: time(usage.ru_stime) })
}
