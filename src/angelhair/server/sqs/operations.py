"""The one table of actions: what each takes on the wire, how that is checked, what it gives."""

from __future__ import annotations

from angelhair.server.aws.operation import Operation
from angelhair.server.sqs import inputs, outputs
from angelhair.server.sqs.checks import batches, messages, moves, queues, receipts

_ALL = (
    Operation(inputs.AddPermissionRequest, queues.check_add_permission, outputs.Nothing),
    Operation(inputs.CancelMessageMoveTaskRequest, moves.check_cancel_move, outputs.CancelMessageMoveTaskResult),
    Operation(inputs.ChangeMessageVisibilityRequest, receipts.check_change, outputs.Nothing),
    Operation(
        inputs.ChangeMessageVisibilityBatchRequest, batches.check_change_batch,
        outputs.ChangeMessageVisibilityBatchResult,
    ),
    Operation(inputs.CreateQueueRequest, queues.check_create, outputs.CreateQueueResult),
    Operation(inputs.DeleteMessageRequest, receipts.check_delete, outputs.Nothing),
    Operation(inputs.DeleteMessageBatchRequest, batches.check_delete_batch, outputs.DeleteMessageBatchResult),
    Operation(inputs.DeleteQueueRequest, queues.check_delete_queue, outputs.Nothing),
    Operation(inputs.GetQueueAttributesRequest, queues.check_get_attributes, outputs.GetQueueAttributesResult),
    Operation(inputs.GetQueueUrlRequest, queues.check_queue_url, outputs.GetQueueUrlResult),
    Operation(
        inputs.ListDeadLetterSourceQueuesRequest, queues.check_list_sources, outputs.ListDeadLetterSourceQueuesResult
    ),
    Operation(inputs.ListMessageMoveTasksRequest, moves.check_list_moves, outputs.ListMessageMoveTasksResult),
    Operation(inputs.ListQueueTagsRequest, queues.check_list_tags, outputs.ListQueueTagsResult),
    Operation(inputs.ListQueuesRequest, queues.check_list, outputs.ListQueuesResult),
    Operation(inputs.PurgeQueueRequest, queues.check_purge, outputs.Nothing),
    Operation(inputs.ReceiveMessageRequest, receipts.check_receive, outputs.ReceiveMessageResult),
    Operation(inputs.RemovePermissionRequest, queues.check_remove_permission, outputs.Nothing),
    Operation(inputs.SendMessageRequest, messages.check_send, outputs.SendMessageResult),
    Operation(inputs.SendMessageBatchRequest, batches.check_send_batch, outputs.SendMessageBatchResult),
    Operation(inputs.SetQueueAttributesRequest, queues.check_set_attributes, outputs.Nothing),
    Operation(inputs.StartMessageMoveTaskRequest, moves.check_start_move, outputs.StartMessageMoveTaskResult),
    Operation(inputs.TagQueueRequest, queues.check_tag, outputs.Nothing),
    Operation(inputs.UntagQueueRequest, queues.check_untag, outputs.Nothing),
)

OPERATIONS = {operation.name: operation for operation in _ALL}
"""By the name of the action."""
