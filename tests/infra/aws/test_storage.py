"""Buckets, file systems and repositories as they are registered."""

import pytest

from tests.infra.aws.recorder import ACCOUNT, Recording, changed, platform, record, recording, statements

FSX = "aws:fsx/lustreFileSystem:LustreFileSystem"
EFS = "aws:efs/fileSystem:FileSystem"
BUCKET = "aws:s3/bucket:Bucket"
RULES = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


def test_buckets_refuse_whoever_comes_without_tls(prod: Recording) -> None:
    for bucket in prod.of_type(BUCKET):
        policy = prod.named(f"{bucket.name}-tls", "aws:s3/bucketPolicy:BucketPolicy").inputs
        (denied,) = statements(policy["policy"])
        assert policy["bucket"] == bucket.inputs["bucket"]
        assert (denied["Effect"], denied["Principal"], denied["Action"]) == ("Deny", "*", "s3:*")
        assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
        assert denied["Resource"] == [f"arn:{bucket.name}", f"arn:{bucket.name}/*"]


def test_buckets_are_closed_to_the_public_in_every_way(prod: Recording) -> None:
    blocks = prod.of_type("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock")
    assert len(blocks) == len(prod.of_type(BUCKET)) == 2
    for block in blocks:
        assert [value for key, value in block.inputs.items() if key != "bucket"] == [True] * 4


def test_buckets_are_encrypted_with_the_platforms_key_and_versioned(prod: Recording) -> None:
    for found in prod.of_type("aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"):
        (rule,) = found.inputs["rules"]
        assert rule["bucketKeyEnabled"] is True
        assert rule["applyServerSideEncryptionByDefault"]["kmsMasterKeyId"] == "arn:prod-key"
    for found in prod.of_type("aws:s3/bucketVersioning:BucketVersioning"):
        assert found.inputs["versioningConfiguration"]["status"] == "Enabled"


def test_deleted_checkpoints_are_gone_sooner_than_spoiled_data_sets(prod: Recording) -> None:
    days = {}
    for found in prod.of_type("aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"):
        (rule,) = found.inputs["rules"]
        assert rule["abortIncompleteMultipartUpload"]["daysAfterInitiation"] == 7
        days[found.name] = rule["noncurrentVersionExpiration"]["noncurrentDays"]
    assert days["prod-checkpoints-lifecycle"] < days["prod-datasets-lifecycle"]


def test_data_is_protected_exactly_where_the_cluster_is(prod: Recording) -> None:
    kinds = (BUCKET, EFS, FSX, "aws:ecr/repository:Repository", "aws:kms/key:Key")
    assert all(found.protect for kind in kinds for found in prod.of_type(kind))
    assert not any(bucket.inputs["forceDestroy"] for bucket in prod.of_type(BUCKET))
    passing = record(changed(platform("prod"), cluster__deletion_protection=False))
    assert not any(found.protect for found in passing.resources)
    assert all(bucket.inputs["forceDestroy"] for bucket in passing.of_type(BUCKET))


def test_nothing_but_what_holds_data_is_protected(prod: Recording) -> None:
    protected = {found.type.rpartition(":")[2] for found in prod.resources if found.protect}
    assert protected == {"Bucket", "FileSystem", "LustreFileSystem", "Repository", "Key"}


def test_a_scratch_file_system_is_never_protected() -> None:
    storage = {"fsx": [{"name": "scratch", "capacity_gib": 1200}]}
    (scratch,) = record(changed(platform("prod"), storage=storage)).of_type(FSX)
    assert not scratch.protect


def test_efs_can_be_mounted_from_every_zone(prod: Recording) -> None:
    targets = {found.inputs["subnetId"] for found in prod.of_type("aws:efs/mountTarget:MountTarget")}
    assert targets == {f"id-prod-private-{zone}" for zone in platform("prod").network.zones}
    (file_system,) = prod.of_type(EFS)
    assert file_system.inputs["encrypted"] is True
    assert file_system.inputs["kmsKeyId"] == "arn:prod-key"
    assert file_system.inputs["throughputMode"] == "elastic"


def test_lustre_stands_in_the_zone_of_the_h100s(prod: Recording) -> None:
    (file_system,) = prod.of_type(FSX)
    assert file_system.inputs["subnetIds"] == "id-prod-private-us-east-1b"


def test_persistent_lustre_has_its_throughput_and_the_platforms_key(prod: Recording) -> None:
    (file_system,) = prod.of_type(FSX)
    assert file_system.inputs["deploymentType"] == "PERSISTENT_2"
    assert file_system.inputs["perUnitStorageThroughput"] == 250
    assert file_system.inputs["kmsKeyId"] == "arn:prod-key"


def test_scratch_lustre_is_given_neither_because_fsx_refuses_both() -> None:
    (file_system,) = recording("dev").of_type(FSX)
    assert file_system.inputs["deploymentType"] == "SCRATCH_2"
    assert not {"perUnitStorageThroughput", "kmsKeyId"} & set(file_system.inputs)


@pytest.mark.parametrize(
    "volume",
    [
        {"deployment": "scratch-2"},
        {"deployment": "persistent-1", "throughput_mb_s_per_tib": 200},
        {"deployment": "persistent-2", "throughput_mb_s_per_tib": 125},
    ],
    ids=lambda volume: volume["deployment"],
)
def test_every_kind_of_lustre_is_linked_to_s3_both_ways(volume: dict) -> None:
    link = {"name": "fsx", "capacity_gib": 1200, "s3_link": "s3://example-corpora/tokenized", **volume}
    found = record(changed(platform("prod"), storage={"fsx": [link]}))
    (association,) = found.of_type("aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation")
    assert association.inputs["dataRepositoryPath"] == "s3://example-corpora/tokenized"
    assert set(association.inputs["s3"]) == {"autoImportPolicy", "autoExportPolicy"}
    (file_system,) = found.of_type(FSX)
    assert not {"importPath", "exportPath", "autoImportPolicy"} & set(file_system.inputs)


def test_nodes_and_lustre_servers_call_each_other_on_lustres_ports(prod: Recording) -> None:
    opened = {
        (rule.inputs["referencedSecurityGroupId"], rule.inputs["securityGroupId"], rule.inputs["fromPort"])
        for rule in prod.of_type(RULES)
        if "lustre" in rule.name and rule.inputs["ipProtocol"] == "tcp"
    }
    pairs = [("sg-cluster", "id-prod-lustre"), ("id-prod-lustre", "sg-cluster")]
    assert opened == {(*pair, port) for pair in pairs for port in (988, 1018)}


def test_images_are_immutable_scanned_and_encrypted(prod: Recording) -> None:
    (repository,) = prod.of_type("aws:ecr/repository:Repository")
    assert repository.inputs["name"] == "trainyard/prod/training"
    assert repository.inputs["imageTagMutability"] == "IMMUTABLE"
    assert repository.inputs["imageScanningConfiguration"] == {"scanOnPush": True}
    (encryption,) = repository.inputs["encryptionConfigurations"]
    assert encryption == {"encryptionType": "KMS", "kmsKey": "arn:prod-key"}


def test_another_registry_means_no_repositories_here() -> None:
    found = record(changed(platform("prod"), images={"registry": "ghcr.io/example", "build": ["training"]}))
    assert found.of_type("aws:ecr/repository:Repository") == []
    assert found.cluster.repositories == {}


def test_training_pods_may_use_the_buckets_and_nothing_else(prod: Recording) -> None:
    for namespace in ("research", "pretraining"):
        policy = prod.named(f"prod-{namespace}-pods-policy", "aws:iam/rolePolicy:RolePolicy").inputs["policy"]
        allowed = list(statements(policy))
        resources = {one for statement in allowed for one in _listed(statement["Resource"])}
        buckets = {f"arn:prod-{bucket}{suffix}" for bucket in ("checkpoints", "datasets") for suffix in ("", "/*")}
        assert resources == {*buckets, "arn:prod-key"}
        assert not any("*" in action for statement in allowed for action in _listed(statement["Action"]))


def test_teams_of_one_namespace_share_its_role() -> None:
    team = {"namespace": "shared", "queue": "research"}
    found = record(changed(platform("prod"), teams=[{"name": name, **team} for name in ("one", "two")]))
    associations = found.of_type("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    assert [one.inputs["namespace"] for one in associations].count("shared") == 1


def test_real_bucket_names_start_with_the_account(prod: Recording) -> None:
    names = {found.inputs["bucket"] for found in prod.of_type(BUCKET)}
    assert names == {f"{ACCOUNT}-us-east-1-prod-checkpoints", f"{ACCOUNT}-us-east-1-prod-datasets"}


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
