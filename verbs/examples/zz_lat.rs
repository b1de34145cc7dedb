//! temp
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use uroce::*;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let drive = if args.get(3).is_some_and(|a| a == "thread") { Drive::Thread { cpu: None } } else { Drive::Inline };
    let server = args[2] == "-";
    let mut s = if server { TcpListener::bind("0.0.0.0:7777")?.accept()?.0 } else { TcpStream::connect((args[2].as_str(), 7777))? };
    let ctx = Context::open(DeviceConfig::new(&args[1]).drive(drive))?;
    eprintln!("{}", ctx.query_port().mode);
    let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(64).build()?);
    let qp = pd.create_qp(QpType::Rc, &cq, &cq).access(Access::REMOTE_WRITE).build()?;
    let mr = pd.alloc_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    s.write_all(format!("{}", qp.endpoint()).as_bytes())?;
    let mut b = [0u8; 51]; s.read_exact(&mut b)?;
    let peer: Endpoint = std::str::from_utf8(&b)?.parse()?;
    s.write_all(&mr.remote().to_bytes())?;
    let mut r = [0u8; 20]; s.read_exact(&mut r)?;
    let remote = RemoteMr::from_bytes(r);
    let qp = qp.connect(peer)?;
    s.write_all(b"x")?; let mut x=[0u8]; s.read_exact(&mut x)?;
    let n = 100_000u64;
    let mut out = [Completion::default(); 16];
    #[allow(clippy::disallowed_methods)]
    let t = std::time::Instant::now();
    let mut posted = 0u64;
    for i in 1..=n {
        if server { while mr.load_u64(0)? < i { cq.poll(&mut out); } }
        posted += 1;
        let w = SendWr::rdma_write_inline(i, &i.to_le_bytes(), remote);
        qp.post_send(&[if posted % 32 == 0 { w.signaled() } else { w }])?;
        if !server { while mr.load_u64(0)? < i { let k = cq.poll(&mut out); if k > 0 && out[0].status != WcStatus::Success { panic!("{:?}", out[0]); } } }
    }
    println!("{:.2} us half round trip", t.elapsed().as_nanos() as f64 / n as f64 / 2000.0);
    for (k,v) in ctx.counters().iter().filter(|(_, v)| *v>0) { print!("{k}={v} "); }
    println!("{:?}", ctx.query_port().stats);
    // flush
    if server { for _ in 0..1000 { cq.poll(&mut out); } }
    Ok(())
}
