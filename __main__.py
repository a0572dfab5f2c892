"""What `pulumi up` runs: the stack's file says whether it is a platform or an experiment."""

from infra.platform import deploy_platform
from workloads.experiment import deploy_experiment
from workloads.preview import checked_stack
from workloads.stacks import PlatformStack

stack = checked_stack()
if isinstance(stack, PlatformStack):
    deploy_platform(stack.file.stack, stack.config, stack.file.region)
else:
    deploy_experiment(stack)
