//! `DescribeImages` and `DescribeSnapshots`.

use std::collections::BTreeMap;

use super::{Filters, Image, ImageDevice, Network, Snapshot, dry_run, tags};
use crate::{ApiError, Tree, pages::Page, region::View};

impl Network {
    /// A snapshot, also one that is not shared with the account.
    pub(crate) fn snapshot(&self, id: &str) -> Option<Snapshot> {
        let mut of_images = self.images.values().flat_map(Image::snapshots).map(|(snapshot, _)| snapshot);
        let own = self.snapshots.get(id);
        own.or_else(|| of_images.find(|snapshot| snapshot.id == id)).cloned()
    }

    /// The snapshots that the account may see, and whether each is encrypted.
    fn visible_snapshots(&self) -> BTreeMap<&str, (&Snapshot, bool)> {
        let shared = self.images.values().filter(|image| !image.private_snapshots).flat_map(Image::snapshots);
        let own = self.snapshots.values().map(|snapshot| (snapshot, false));
        shared.chain(own).map(|(snapshot, encrypted)| (snapshot.id.as_str(), (snapshot, encrypted))).collect()
    }
}

pub(crate) fn images(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("ImageIds");
    let known = &view.state.network.images;
    if let Some(id) = wanted.iter().find(|id| !known.contains_key(*id)) {
        return Err(ApiError::refused(
            "InvalidAMIID.NotFound",
            format!("The image id '[{id}]' does not exist"),
        ));
    }
    let filters = Filters::read(params, &["image-id", "name", "architecture", "state", "root-device-name"])?;
    let page = Page::results(params, 1, 1000)?;
    let entries = known.values().filter(|image| {
        (wanted.is_empty() || wanted.contains(&image.id))
            && filters.match_all(&image.tags, |name| {
                let value = match name {
                    "image-id" => &image.id,
                    "name" => &image.name,
                    "architecture" => &image.architecture,
                    "state" => image.state(),
                    _ => &image.root_device,
                };
                vec![value.to_owned()]
            })
    });
    let entries = entries.map(|image| {
        let tree = Tree::new()
            .with("ImageId", &image.id)
            .with("Name", &image.name)
            .with("State", image.state())
            .with("Architecture", &image.architecture)
            .with_opt("Platform", image.windows.then_some("windows"))
            .with("OwnerId", &view.scope.account)
            .with("RootDeviceName", &image.root_device)
            .with("RootDeviceType", "ebs")
            .with("BlockDeviceMappings", Tree::list(image.devices().iter().map(ImageDevice::render)))
            .with("Tags", tags::render(&image.tags));
        (image.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "Images", entries.collect()))
}

pub(crate) fn snapshots(view: &View<'_>, params: &Tree) -> Result<Tree, ApiError> {
    dry_run(params)?;
    let wanted = params.texts_of("SnapshotIds");
    let known = view.state.network.visible_snapshots();
    if let Some(id) = wanted.iter().find(|id| !known.contains_key(id.as_str())) {
        let words = format!("The snapshot '{id}' does not exist.");
        return Err(ApiError::refused("InvalidSnapshot.NotFound", words));
    }
    let filters = Filters::read(params, &["snapshot-id", "status"])?;
    let page = Page::results(params, 5, 1000)?;
    let entries = known.values().filter(|(snapshot, _)| {
        (wanted.is_empty() || wanted.contains(&snapshot.id))
            && filters.match_all(&BTreeMap::new(), |name| {
                vec![if name == "status" { "completed".to_owned() } else { snapshot.id.clone() }]
            })
    });
    let entries = entries.map(|(snapshot, encrypted)| {
        let tree = Tree::new()
            .with("SnapshotId", &snapshot.id)
            .with("VolumeId", "vol-ffffffff")
            .with("VolumeSize", snapshot.volume_size)
            .with("Encrypted", *encrypted)
            .with("State", "completed")
            .with("OwnerId", &view.scope.account);
        (snapshot.id.clone(), tree)
    });
    Ok(page.reply(view.settings, "Snapshots", entries.collect()))
}
