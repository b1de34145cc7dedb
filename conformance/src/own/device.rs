//! The device below, opened as a scenario asks for it.

use uroce::Context;

use crate::peer::{FlushForm, Result};

/// Opens a device in a form of FLUSH.
type Open = Box<dyn Fn(FlushForm) -> Result<Context>>;

/// A device that is opened anew when a scenario wants it in another form.
pub struct Device {
    /// Nothing for a device that cannot be opened again: both of its ends speak the same form then.
    open: Option<Open>,
    current: Option<(FlushForm, Context)>,
}

impl Device {
    /// A device that stays as it is.
    pub fn fixed(context: Context) -> Self {
        Self { open: None, current: Some((FlushForm::Specified, context)) }
    }

    /// A device that can be opened in either form.
    pub fn reopening(open: impl Fn(FlushForm) -> Result<Context> + 'static) -> Self {
        Self { open: Some(Box::new(open)), current: None }
    }

    /// The device in this form. Whatever uses it in another must be closed.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn context(&mut self, form: FlushForm) -> Result<Context> {
        let fits = |current: FlushForm| current == form || self.open.is_none();
        if let Some((_, context)) = self.current.as_ref().filter(|(current, _)| fits(*current)) {
            return Ok(context.clone());
        }
        self.current = None; // it holds the interface
        let open = self.open.as_ref().ok_or("the device is gone")?;
        let context = open(form)?;
        self.current = Some((form, context.clone()));
        Ok(context)
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("current", &self.current).finish_non_exhaustive()
    }
}
