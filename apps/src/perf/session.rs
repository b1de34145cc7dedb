//! Two processes agree over TCP what to measure, and how to reach each other.
//!
//! The client says [`Hello`], the server answers with its own or refuses. Then, for each size, the client announces a
//! round and the server says that it is ready; a last message carries the figures to the server.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uroce::{Drive, Mtu};

use super::args::PerfArgs;
use super::cm;
use super::connection::Connection;
use super::measure;
use super::other::Elsewhere;
use super::plan::{Plan, Test};
use super::report::{Report, Shown};
use super::responder::Responder;
use super::side::{self, Side};
use crate::clock::Stopwatch;
use crate::cm::Listener;
use crate::control::{Control, PATIENCE};
use crate::device::{self, Device};
use crate::error::{Failure, Result};
use crate::idle::Idle;
use crate::{interrupt, out, tcp};

/// Of the exchange described here.
const VERSION: u32 = 3;
/// Turns of the server's loop between two looks at the control connection.
const TURNS: u32 = 4096;
/// The same of a server that has nothing to do itself.
const PERIOD: Duration = Duration::from_millis(1);
/// How long a client may be silent; it says every second that it is alive.
const VANISHED: Duration = Duration::from_secs(5);

/// What either end says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    Hello(Box<Hello>),
    Refused {
        reason: String,
    },
    Round {
        size: u32,
    },
    /// With `--cm`: the server has heard of every connection.
    Connected,
    Ready,
    /// How many messages of this round have come.
    Count,
    Counted {
        messages: u64,
    },
    /// From the client, every now and then: a cut cable closes no connection.
    Alive,
    Done {
        reports: Vec<Report>,
    },
}

/// What has to be the same at both ends, and what the other must know.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    version: u32,
    test: Test,
    connection: Connection,
    cm: bool,
    srq: bool,
    /// The largest message.
    size: u32,
    /// Path MTU in bytes: the client's proposal, the server's decision.
    mtu: usize,
    qps: u32,
    tx_depth: u32,
    rx_depth: u32,
    card: side::Card,
}

impl Message {
    /// Why this message is not what was waited for.
    pub(crate) fn unexpected(self) -> Failure {
        match self {
            Self::Refused { reason } => Failure::new(format!("the peer refused: {reason}")),
            _ => Failure::new("the peer said something out of turn: run the same version at both ends"),
        }
    }
}

/// Measures against a server.
pub(crate) fn client(args: &PerfArgs, plan: &Plan, host: &str) -> Result<Vec<Report>> {
    let ctx = device::open(&args.iface, &args.device, Drive::Inline)?;
    let mtu = device::path_mtu(&ctx, plan.mtu)?;
    let mut control = Control::connect(host, args.port)?;
    let near = Side::prepare(&ctx, plan)?;
    control.send(&Message::Hello(Box::new(Hello::new(plan, mtu, near.card()))))?;
    let theirs = match control.receive()? {
        Message::Hello(hello) => hello,
        other => return Err(other.unexpected()),
    };
    let plan = plan.with_mtu(agreed(plan, &theirs)?)?;
    let near = if plan.cm {
        let near = cm::dial(&ctx, near, &theirs.card, args.port)?;
        confirm(&ctx, &mut control)?;
        near.fill(&plan).map(|()| near)?
    } else {
        near.connect(&plan, &theirs.card)?
    };
    ctx.show(&near.qps);
    let mut other = Elsewhere::new(control);
    let reports = measure(args, &plan, &near, &theirs.card, &mut other)?;
    other.control().send(&Message::Done { reports: reports.clone() })?;
    Ok(reports)
}

/// Serves one client; returns its figures.
pub(crate) fn server(args: &PerfArgs, plan: &Plan) -> Result<Vec<Report>> {
    let drive = if plan.test.is_active() { Drive::Inline } else { Drive::default() };
    let ctx = device::open(&args.iface, &args.device, drive)?;
    let mtu = device::path_mtu(&ctx, plan.mtu)?;
    let (mut control, peer) = accept(args.port, plan)?;
    let peer = peer.ip().to_canonical();
    let hello = match control.receive()? {
        Message::Hello(hello) => hello,
        other => return Err(other.unexpected()),
    };
    let plan = agree(plan, mtu, &hello).or_else(|reason| refuse(&mut control, peer, reason))?;
    let prepared = prepare(&ctx, args, &plan);
    let (far, listener) = prepared.or_else(|failure| refuse(&mut control, peer, failure.to_string()))?;
    let answer = Message::Hello(Box::new(Hello::new(&plan, plan.mtu.unwrap_or(mtu), far.card())));
    let far = match listener {
        // The client dials once it has the answer.
        Some(listener) => {
            control.send(&answer)?;
            let far = cm::answer(far, &hello.card, &listener)?;
            far.fill(&plan)?;
            control.send(&Message::Connected)?;
            far
        }
        None => {
            let far = far.connect(&plan, &hello.card);
            let far = far.or_else(|failure| refuse(&mut control, peer, failure.to_string()))?;
            control.send(&answer)?;
            far
        }
    };
    ctx.show(&far.qps);
    let responder = Responder::new(&plan, far, &hello.card)?;
    let reports = serve(control, &plan, responder);
    device::log_counters(&ctx);
    let reports = reports?;
    let shown = Shown::start(&plan, &format!("as {peer} measured"), args.json)?;
    reports.iter().try_for_each(|report| shown.row(report))?;
    Ok(reports)
}

/// Drives the device until the server has heard of every connection: what confirms the last one may have to be repeated.
fn confirm(ctx: &Device, control: &mut Control) -> Result<()> {
    let stopwatch = Stopwatch::start();
    while stopwatch.elapsed() < PATIENCE {
        // What it did does not matter, as the next turn comes soon.
        let _ = ctx.progress();
        match control.poll()? {
            Some(Message::Connected) => return Ok(()),
            Some(other) => return Err(other.unexpected()),
            None => interrupt::pause_unless_asked(PERIOD)?,
        }
    }
    Err(vanished("server", PATIENCE))
}

fn accept(port: u16, plan: &Plan) -> Result<(Control, SocketAddr)> {
    let listener = tcp::listen(port)?;
    out::note(format_args!("waiting for `uroce {} IFACE HOST` on TCP port {port}", plan.test.command()));
    Control::accept(&listener)
}

/// Everything before the client is connected, and what listens for it if the connection manager is to connect.
fn prepare(ctx: &Device, args: &PerfArgs, plan: &Plan) -> Result<(side::Prepared, Option<Listener>)> {
    let anywhere = SocketAddr::from(([0; 4], args.port));
    let listener = plan.cm.then(|| Listener::bind(ctx, anywhere)).transpose()?;
    Ok((Side::prepare(ctx, plan)?, listener))
}

fn refuse<T>(control: &mut Control, peer: IpAddr, reason: String) -> Result<T> {
    let failure = Failure::new(format!("refused {peer}: {reason}"));
    control.send(&Message::Refused { reason })?;
    Err(failure)
}

impl Hello {
    fn new(plan: &Plan, mtu: Mtu, card: side::Card) -> Self {
        Self {
            version: VERSION,
            test: plan.test,
            connection: plan.connection,
            cm: plan.cm,
            srq: plan.srq,
            size: plan.largest(),
            mtu: mtu.bytes(),
            qps: plan.qps,
            tx_depth: plan.tx_depth,
            rx_depth: plan.rx_depth,
            card,
        }
    }
}

/// The server's plan for this client, or why there is none.
fn agree(plan: &Plan, mtu: Mtu, hello: &Hello) -> Result<Plan, String> {
    if hello.version != VERSION {
        return Err("the two ends run different versions of uroce: install the same one at both".to_owned());
    }
    if hello.test != plan.test {
        let (ours, theirs) = (plan.test.command(), hello.test.command());
        return Err(format!(
            "the server runs `uroce {ours}`, the client `uroce {theirs}`: run the same at both ends"
        ));
    }
    if (hello.connection, hello.srq, hello.cm) != (plan.connection, plan.srq, plan.cm) {
        let option = |connection: Connection, srq, cm| {
            let (srq, cm) = (if srq { " --use-srq" } else { "" }, if cm { " --cm" } else { "" });
            format!("-c {}{srq}{cm}", connection.name())
        };
        let ours = option(plan.connection, plan.srq, plan.cm);
        let theirs = option(hello.connection, hello.srq, hello.cm);
        return Err(format!("the server was told {ours}, the client {theirs}: give the same at both ends"));
    }
    let theirs = Mtu::from_bytes(hello.mtu).ok_or("the client names a path MTU that does not exist")?;
    if plan.mtu.is_some_and(|asked| asked > theirs) {
        let (asked, theirs) = (mtu.bytes(), theirs.bytes());
        return Err(format!(
            "the server was told path MTU {asked}, the client has {theirs}: give the same -m at both ends"
        ));
    }
    let plan = Plan {
        size: hello.size,
        all: false,
        mtu: Some(mtu.min(theirs)),
        qps: hello.qps,
        tx_depth: hello.tx_depth,
        rx_depth: hello.rx_depth,
        ..plan.clone()
    };
    plan.check_bounds().map(|()| plan).map_err(str::to_owned)
}

/// The path MTU that the server decided on.
fn agreed(plan: &Plan, hello: &Hello) -> Result<Mtu> {
    let decided = Mtu::from_bytes(hello.mtu);
    let decided = decided.ok_or_else(|| Failure::new("the peer names a path MTU that does not exist"))?;
    match plan.mtu {
        Some(asked) if asked != decided => Err(Failure::new(format!(
            "path MTU {} was asked for, the peer's link carries only {}: use `-m {}`, or raise the MTU of its link",
            asked.bytes(),
            decided.bytes(),
            decided.bytes()
        ))),
        _ => Ok(decided),
    }
}

/// Does the server's part until the client is done.
fn serve(mut control: Control, plan: &Plan, mut responder: Responder) -> Result<Vec<Report>> {
    let (mut heard, mut idle) = (Stopwatch::start(), Idle::default());
    loop {
        let message = if plan.test.is_active() {
            act(&mut control, &mut responder, &mut idle)?
        } else {
            // The thread of the device answers meanwhile.
            responder.check()?;
            interrupt::pause_unless_asked(PERIOD)?;
            control.poll()?
        };
        match message {
            None if heard.elapsed() < VANISHED => continue,
            None => return Err(vanished("client", VANISHED)),
            Some(Message::Round { size }) if (1..=plan.size).contains(&size) => {
                responder.begin(size)?;
                control.send(&Message::Ready)?;
            }
            Some(Message::Count) => control.send(&Message::Counted { messages: responder.settle()? })?,
            Some(Message::Alive) => {}
            Some(Message::Done { reports }) => return Ok(reports),
            Some(other) => return Err(other.unexpected()),
        }
        heard = Stopwatch::start();
    }
}

/// Drives the responder for a while, then looks whether the client has said something.
fn act(control: &mut Control, responder: &mut Responder, idle: &mut Idle) -> Result<Option<Message>> {
    for _ in 0..TURNS {
        let busy = responder.step()?;
        idle.after(!busy);
    }
    interrupt::check()?;
    control.poll()
}

fn vanished(peer: &str, time: Duration) -> Failure {
    let seconds = time.as_secs();
    Failure::new(format!(
        "the {peer} has not been heard of for {seconds} s: it hangs or cannot be reached any more; start both ends again"
    ))
}
