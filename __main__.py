"""What `pulumi up` runs: the stack's file says whether it is a platform or an experiment."""

import pulumi

from infra.platform import deploy_platform
from workloads.experiment import deploy_experiment
from workloads.stacks import PlatformStack, load, stack_path

stack = load(stack_path(pulumi.get_stack()))
if isinstance(stack, PlatformStack):
    deploy_platform(stack)
else:
    deploy_experiment(stack)
