"""Launch templates: versions keep their user data, can be deleted, and are found by number."""

from moto.core.responses import ActionResult
from moto.ec2.exceptions import InvalidLaunchTemplateVersionNotFound
from moto.ec2.models.launch_templates import LaunchTemplate, LaunchTemplateVersion
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.utils import parse_user_data

from .uses import count


def _version_user_data() -> None:
    # AWS: CreateLaunchTemplateVersion takes the same LaunchTemplateData as CreateLaunchTemplate.
    # moto: decodes UserData of the first version only; launching from another version fails an assertion.
    original = LaunchTemplateVersion.__init__

    def initialize(self, template, number, data, description):
        if isinstance(data.get("UserData"), str):
            count("launch-template-version-user-data")
            data = {**data, "UserData": parse_user_data(data["UserData"])}
        original(self, template, number, data, description)

    LaunchTemplateVersion.__init__ = initialize


def _version_numbers() -> None:
    # AWS: a version keeps its number when others are deleted, and a number is never used again.
    # moto: takes the position in the list for the number.
    def create_version(self, data, description):
        number = getattr(self, "_last_number", 0) + 1
        self._last_number = number
        version = LaunchTemplateVersion(self, number, data, description)
        self.versions.append(version)
        return version

    def get_version(self, number):
        wanted = str(number)
        if wanted.lower() == "$latest":
            return self.versions[-1]
        if wanted.lower() == "$default":
            wanted = str(self.default_version_number)
        for version in self.versions:
            if str(version.number) == wanted:
                return version
        raise InvalidLaunchTemplateVersionNotFound(template_id=self.id, version=number)

    LaunchTemplate.create_version = create_version
    LaunchTemplate.get_version = get_version
    LaunchTemplate.default_version = lambda self: self.get_version("$Default")


def _delete_versions() -> None:
    # AWS: DeleteLaunchTemplateVersions deletes up to 200 versions; the default version cannot be deleted.
    # moto: does not have the action.
    def delete_launch_template_versions(self):
        count("delete-launch-template-versions")
        if template_id := self._get_param("LaunchTemplateId"):
            template = self.ec2_backend.get_launch_template(template_id)
        else:
            template = self.ec2_backend.get_launch_template_by_name(self._get_param("LaunchTemplateName"))
        self.error_on_dryrun()
        done, failed = [], []
        for number in self._get_param("Versions", []):
            item = {
                "LaunchTemplateId": template.id,
                "LaunchTemplateName": template.name,
                "VersionNumber": int(number),
            }
            known = [version for version in template.versions if str(version.number) == str(number)]
            if not known:
                error = ("launchTemplateVersionDoesNotExist", "The version does not exist.")
            elif template.is_default(known[0]):
                error = ("operationNotPermitted", "The default version cannot be deleted.")
            else:
                template.versions.remove(known[0])
                done.append(item)
                continue
            failed.append({**item, "ResponseError": {"Code": error[0], "Message": error[1]}})
        return ActionResult({
            "SuccessfullyDeletedLaunchTemplateVersions": done,
            "UnsuccessfullyDeletedLaunchTemplateVersions": failed,
        })

    LaunchTemplates.delete_launch_template_versions = delete_launch_template_versions


def install() -> None:
    """Applies the corrections of this module."""
    _version_user_data()
    _version_numbers()
    _delete_versions()
