//! Address handles.

use std::sync::Arc;

use uroce_stack::Completion;

use crate::error::Error;
use crate::grh;
use crate::pd::ProtectionDomain;
use crate::qp::AddressVector;

/// The way to a peer or to a multicast group, found once and used for many datagrams (`ibv_ah`). A cheap handle: clones
/// name the same way.
///
/// Made by [`ProtectionDomain::create_ah`]; named in [`SendWr::to`](crate::SendWr::to).
#[derive(Clone, Debug)]
pub struct AddressHandle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pd: ProtectionDomain,
    av: AddressVector,
    stack: uroce_stack::AddressHandle,
}

impl AddressHandle {
    pub(crate) fn new(pd: &ProtectionDomain, av: &AddressVector) -> Result<Self, Error> {
        let path = pd.context().resolve(av, Default::default(), None)?;
        Self::over(pd, av.clone(), &path)
    }

    /// The way back to who sent a datagram, which has told its MAC.
    pub(crate) fn answer(
        pd: &ProtectionDomain,
        completion: &Completion,
        header: &[u8; grh::BYTES],
    ) -> Result<Self, Error> {
        let (source, destination) = grh::addresses(header);
        let av = AddressVector::new(source.into());
        let path = pd.context().path_back(&av, destination, completion.source_mac)?;
        Self::over(pd, av, &path)
    }

    fn over(pd: &ProtectionDomain, av: AddressVector, path: &uroce_stack::wire::Path) -> Result<Self, Error> {
        let stack = uroce_stack::AddressHandle::new(pd.handle(), path)
            .map_err(|_| Error::Config("the way mixes IPv4 and IPv6 addresses"))?;
        Ok(Self(Arc::new(Inner { pd: pd.clone(), av, stack })))
    }

    /// Where it leads, as it was asked for.
    #[must_use]
    pub fn address(&self) -> &AddressVector {
        &self.0.av
    }

    /// The domain that it belongs to: queue pairs of others cannot use it.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        &self.0.pd
    }

    pub(crate) fn stack(&self) -> &uroce_stack::AddressHandle {
        &self.0.stack
    }
}
