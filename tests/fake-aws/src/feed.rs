//! What happens in a scope, told one by one for those who watch a simulation; kept only if asked for.

use crate::{
    Scope, Simulator,
    autoscaling::Lifecycle,
    happening::{End, Happening, What},
    region::Region,
};

impl Region {
    /// Takes note of something, if anybody watches.
    pub(crate) fn tell(&mut self, what: impl FnOnce(&Self) -> Option<What>) {
        if self.settings.keep_feed
            && let Some(what) = what(self)
        {
            self.feed.push(Happening { at: self.now, what });
        }
    }

    /// A machine begins to shut down.
    pub(crate) fn tell_shut_down(&mut self, id: &str) {
        self.tell(|region| {
            let own = region.state.instances.get(id)?.group.as_ref();
            let group = own.map(|own| own.group.clone());
            let own = own.filter(|own| own.lifecycle == Lifecycle::TerminatingProceed);
            Some(What::ShutDown(End {
                id: id.to_owned(),
                group,
                cause: own.map(|own| own.cause.clone().unwrap_or_default()),
                held: own.and_then(|own| own.held.clone()),
                timed_out: own.is_some_and(|own| own.timed_out),
            }))
        });
    }
}

impl Simulator {
    /// What happened in a scope since this was last asked ([`crate::Settings::keep_feed`]).
    #[must_use]
    pub fn take_feed(&self, scope: &Scope) -> Vec<Happening> {
        self.world().regions.get_mut(scope).map(|region| std::mem::take(&mut region.feed)).unwrap_or_default()
    }
}
