//! What the examples share: two connected ends, and a way to talk before RDMA does.
//!
//! Without arguments an example runs both ends in this process, on an in-memory cable. With the name of an
//! interface it is the server on that interface, with the name of an interface and the server's address it is
//! the client:
//!
//! ```text
//! cargo run --example send_recv
//! sudo target/debug/examples/send_recv eth0                 # on one host
//! sudo target/debug/examples/send_recv eth0 192.0.2.1       # on the other
//! ```
#![allow(dead_code, unreachable_pub, reason = "a part of each example, which uses a part of it")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use uroce::{
    Access, CompletionChannel, CompletionQueue, Context, DeviceConfig, Gid, PreparedQueuePair,
    ProtectionDomain, QpType, Qpn, QueuePair, RemoteMr, testing,
};

pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Any port will do on which the two find each other; this is the one that the `ibv_*_pingpong` programs use.
const PORT: u16 = 18515;

/// One end of a connection.
pub struct End {
    pub ctx: Context,
    pub pd: ProtectionDomain,
    pub cq: CompletionQueue,
    pub qp: QueuePair,
    /// Where the completion queue raises its events, with the token 7.
    pub channel: CompletionChannel,
    talk: BufReader<Box<dyn Stream>>,
}

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// Runs both ends, or the one that the arguments ask for.
pub fn run(server: fn(&mut End) -> Outcome, client: fn(&mut End) -> Outcome) -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => both(server, client),
        [interface] => {
            let (stream, peer) = TcpListener::bind(("::", PORT))?.accept()?;
            println!("serving {peer}");
            server(&mut End::connect(open(interface)?, Box::new(stream))?)
        }
        [interface, host] => {
            let stream = TcpStream::connect((host.as_str(), PORT))?;
            client(&mut End::connect(open(interface)?, Box::new(stream))?)
        }
        _ => Err("usage: EXAMPLE [INTERFACE [SERVER]]".into()),
    }
}

fn both(server: fn(&mut End) -> Outcome, client: fn(&mut End) -> Outcome) -> Outcome {
    let (left, right) = testing::loopback_pair(testing::LinkModel::default())?;
    let (ours, theirs) = UnixStream::pair()?;
    let server = std::thread::spawn(move || server(&mut End::connect(left, Box::new(ours))?));
    client(&mut End::connect(right, Box::new(theirs))?)?;
    server.join().map_err(|_| "the server panicked")?
}

fn open(interface: &str) -> Outcome<Context> {
    Ok(Context::open(DeviceConfig::new(interface))?)
}

impl End {
    /// A queue pair that is connected to the one at the other end of `stream`.
    fn connect(ctx: Context, stream: Box<dyn Stream>) -> Outcome<Self> {
        let mut talk = BufReader::new(stream);
        let channel = ctx.create_comp_channel()?;
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(64).channel(&channel).token(7).build()?);
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).access(access).build()?;
        let qp = join(&mut talk, qp)?;
        Ok(Self { ctx, pd, cq, qp, channel, talk })
    }

    /// Connects another queue pair to one that the peer joins at the same time.
    pub fn join(&mut self, qp: PreparedQueuePair) -> Outcome<QueuePair> {
        join(&mut self.talk, qp)
    }

    /// Waits until the peer is here, too.
    pub fn meet(&mut self) -> Outcome {
        exchange(&mut self.talk, "here").map(|_| ())
    }

    /// Tells the peer about memory that it may use.
    pub fn tell(&mut self, region: RemoteMr) -> Outcome {
        exchange(&mut self.talk, &format!("{:x} {:x} {:x}", region.addr, region.len, region.rkey)).map(|_| ())
    }

    /// Hears of memory of the peer.
    pub fn hear(&mut self) -> Outcome<RemoteMr> {
        let line = exchange(&mut self.talk, "listening")?;
        let numbers: Vec<u64> =
            line.split(' ').map(|word| u64::from_str_radix(word, 16)).collect::<Result<_, _>>()?;
        match numbers[..] {
            [addr, len, rkey] => Ok(RemoteMr { addr, len, rkey: rkey.try_into()? }),
            _ => Err(format!("{line:?} names no memory").into()),
        }
    }
}

impl End {
    /// Tells the peer where datagrams go.
    pub fn tell_address(&mut self, qpn: Qpn) -> Outcome {
        exchange(&mut self.talk, &format!("{} {:x}", self.ctx.gid(), qpn.get())).map(|_| ())
    }

    /// Hears where datagrams go.
    pub fn hear_address(&mut self) -> Outcome<(Gid, Qpn)> {
        let line = exchange(&mut self.talk, "listening")?;
        let (gid, qpn) = line.split_once(' ').ok_or("no address")?;
        Ok((gid.parse()?, Qpn::new(u32::from_str_radix(qpn, 16)?)))
    }
}

fn join(talk: &mut BufReader<Box<dyn Stream>>, qp: PreparedQueuePair) -> Outcome<QueuePair> {
    let peer = exchange(talk, &qp.endpoint().to_string())?.parse()?;
    let qp = qp.connect(peer)?;
    exchange(talk, "here")?;
    Ok(qp)
}

/// Each end says a line and hears one.
fn exchange(talk: &mut BufReader<Box<dyn Stream>>, line: &str) -> Outcome<String> {
    writeln!(talk.get_mut(), "{line}")?;
    let mut answer = String::new();
    match talk.read_line(&mut answer)? {
        0 => Err("the peer went away".into()),
        _ => Ok(answer.trim_end().to_owned()),
    }
}
