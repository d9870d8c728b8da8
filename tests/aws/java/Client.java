// The SDK of AWS for Java against the server whose URL is given: a line for each story, "ok" or "failed" before its name, and
// what went wrong after it. Nothing but the URL is ours. It is run from its source: java -cp … Client.java URL PREFIX

import java.io.PrintWriter;
import java.io.StringWriter;
import java.math.BigInteger;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsAsyncClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.BatchEntryIdsNotDistinctException;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.InvalidMessageContentsException;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.PurgeQueueInProgressException;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.QueueNameExistsException;
import software.amazon.awssdk.services.sqs.model.ReceiptHandleIsInvalidException;
import software.amazon.awssdk.services.sqs.model.ReceiveMessageRequest;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SqsException;

public class Client {
    interface Story {
        void tell() throws Exception;
    }

    private static final AwsCredentialsProvider KEYS =
        StaticCredentialsProvider.create(AwsBasicCredentials.create("any", "any"));

    private final String prefix;
    private final SqsClient sqs;
    private final SqsAsyncClient later;

    Client(URI url, String prefix) {
        this.prefix = prefix;
        sqs = SqsClient.builder().endpointOverride(url).region(Region.EU_WEST_1).credentialsProvider(KEYS).build();
        // It speaks HTTP through another library.
        later = SqsAsyncClient.builder().endpointOverride(url).region(Region.EU_WEST_1).credentialsProvider(KEYS).build();
    }

    public static void main(String[] arguments) {
        var client = new Client(URI.create(arguments[0]), arguments[1]);
        var stories = new LinkedHashMap<String, Story>();
        stories.put("a queue is made, found and described", client::described);
        stories.put("a message arrives with its attributes and checksums", client::attributes);
        stories.put("of a batch the bad entry alone fails", client::batch);
        stories.put("a long poll is answered when something comes", client::poll);
        stories.put("released it comes again at once and deleted never", client::visibility);
        stories.put("fifo keeps the order of a group and drops what is sent twice", client::order);
        stories.put("errors are of the classes that the SDK has for them", client::errors);
        stories.forEach((name, story) -> {
            try {
                story.tell();
                System.out.println("ok\t" + name);
            } catch (Throwable caught) {
                var trace = new StringWriter();
                caught.printStackTrace(new PrintWriter(trace));
                System.out.println("failed\t" + name + "\t" + trace.toString().replace("\n", " | "));
            }
        });
        System.exit(0);
    }

    private void described() {
        var url = made("described", Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "77"));
        same(url, sqs.getQueueUrl(ask -> ask.queueName(prefix + "described")).queueUrl());
        same(List.of(url), sqs.listQueues(ask -> ask.queueNamePrefix(prefix + "described")).queueUrls());
        sqs.tagQueue(ask -> ask.queueUrl(url).tags(Map.of("colour", "blue")));
        same(Map.of("colour", "blue"), sqs.listQueueTags(ask -> ask.queueUrl(url)).tags());
        sqs.setQueueAttributes(ask -> ask.queueUrl(url).attributes(Map.of(QueueAttributeName.DELAY_SECONDS, "5")));
        var wanted = List.of(QueueAttributeName.VISIBILITY_TIMEOUT, QueueAttributeName.DELAY_SECONDS);
        same(
            Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "77", QueueAttributeName.DELAY_SECONDS, "5"),
            sqs.getQueueAttributes(ask -> ask.queueUrl(url).attributeNames(wanted)).attributes());
    }

    private void attributes() throws Exception {
        var url = made("attributes", Map.of());
        var body = "grüße, 世界 🦆 <&>\r\n";
        var attributes = Map.of(
            "text", MessageAttributeValue.builder().dataType("String").stringValue("one & two").build(),
            "number", MessageAttributeValue.builder().dataType("Number.int").stringValue("-7.50").build(),
            "bytes", MessageAttributeValue.builder().dataType("Binary")
                .binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1, -128, 10})).build());
        // The SDK compares the checksums of bodies and attributes by itself, on the way in and out.
        var sent = sqs.sendMessage(ask -> ask.queueUrl(url).messageBody(body).messageAttributes(attributes));
        var digest = MessageDigest.getInstance("MD5").digest(body.getBytes(StandardCharsets.UTF_8));
        same(HexFormat.of().formatHex(digest), sent.md5OfMessageBody());
        var message = received(url, ask -> ask.messageAttributeNames("All")
            .messageSystemAttributeNames(MessageSystemAttributeName.ALL)).get(0);
        same(sent.messageId(), message.messageId());
        same(body, message.body());
        same(attributes, message.messageAttributes());
        same(sent.md5OfMessageAttributes(), message.md5OfMessageAttributes());
        same("1", message.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT));
    }

    private void batch() {
        var url = made("batch", Map.of());
        var entries = IntStream.range(0, 10).mapToObj(number -> SendMessageBatchRequestEntry.builder()
            .id("e" + number).messageBody("body " + number).delaySeconds(number == 3 ? 901 : 0).build()).toList();
        var sent = sqs.sendMessageBatch(ask -> ask.queueUrl(url).entries(entries));
        same(List.of("e3"), sent.failed().stream().map(entry -> entry.id()).toList());
        same(true, sent.failed().get(0).senderFault());
        same(9, sent.successful().size());
        var messages = received(url, ask -> {});
        same(
            IntStream.of(0, 1, 2, 4, 5, 6, 7, 8, 9).mapToObj(number -> "body " + number).toList(),
            messages.stream().map(Message::body).sorted().toList());
        var deleted = sqs.deleteMessageBatch(ask -> ask.queueUrl(url).entries(messages.stream().map(
            message -> DeleteMessageBatchRequestEntry.builder().id(message.messageId())
                .receiptHandle(message.receiptHandle()).build()).toList()));
        same(9, deleted.successful().size());
    }

    private void poll() throws Exception {
        var url = made("poll", Map.of());
        var waiting = later.receiveMessage(ask -> ask.queueUrl(url).waitTimeSeconds(20));
        Thread.sleep(300);
        sqs.sendMessage(ask -> ask.queueUrl(url).messageBody("at last"));
        same("at last", waiting.get(10, TimeUnit.SECONDS).messages().get(0).body());
    }

    private void visibility() {
        var url = made("visibility", Map.of());
        sqs.sendMessage(ask -> ask.queueUrl(url).messageBody("again"));
        var first = received(url, ask -> ask.visibilityTimeout(600)).get(0);
        same(List.of(), received(url, ask -> {}));
        sqs.changeMessageVisibility(
            ask -> ask.queueUrl(url).receiptHandle(first.receiptHandle()).visibilityTimeout(0));
        var second = received(url, ask -> ask.visibilityTimeout(0)
            .messageSystemAttributeNames(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT)).get(0);
        same(first.messageId(), second.messageId());
        same(false, first.receiptHandle().equals(second.receiptHandle()));
        same("2", second.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT));
        sqs.deleteMessage(ask -> ask.queueUrl(url).receiptHandle(second.receiptHandle()));
        same(List.of(), received(url, ask -> {}));
    }

    private void order() {
        var url = made("order.fifo", Map.of(QueueAttributeName.FIFO_QUEUE, "true"));
        var numbers = new ArrayList<BigInteger>();
        for (var key : List.of("1", "2", "2", "3")) {
            numbers.add(new BigInteger(sqs.sendMessage(ask -> ask.queueUrl(url).messageBody("body " + key)
                .messageGroupId("group").messageDeduplicationId(key)).sequenceNumber()));
        }
        same(numbers.get(1), numbers.get(2));
        same(true, numbers.get(0).compareTo(numbers.get(1)) < 0 && numbers.get(2).compareTo(numbers.get(3)) < 0);
        var first = received(url, ask -> ask.maxNumberOfMessages(1).visibilityTimeout(600)
            .messageSystemAttributeNames(MessageSystemAttributeName.ALL)).get(0);
        same("body 1", first.body());
        same("group", first.attributes().get(MessageSystemAttributeName.MESSAGE_GROUP_ID));
        // The group is blocked while one of it is in flight.
        same(List.of(), received(url, ask -> {}));
        sqs.deleteMessage(ask -> ask.queueUrl(url).receiptHandle(first.receiptHandle()));
        same(List.of("body 2", "body 3"), received(url, ask -> {}).stream().map(Message::body).toList());
    }

    private void errors() {
        var url = made("errors", Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60"));
        refused(QueueDoesNotExistException.class,
            () -> sqs.sendMessage(ask -> ask.queueUrl(url + "-absent").messageBody("x")));
        refused(QueueDoesNotExistException.class, () -> sqs.getQueueUrl(ask -> ask.queueName(prefix + "absent")));
        refused(ReceiptHandleIsInvalidException.class,
            () -> sqs.deleteMessage(ask -> ask.queueUrl(url).receiptHandle("wrong")));
        refused(QueueNameExistsException.class,
            () -> made("errors", Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "61")));
        refused(InvalidMessageContentsException.class,
            () -> sqs.sendMessage(ask -> ask.queueUrl(url).messageBody("\u0001")));
        var twice = List.of(
            SendMessageBatchRequestEntry.builder().id("a").messageBody("1").build(),
            SendMessageBatchRequestEntry.builder().id("a").messageBody("2").build());
        refused(BatchEntryIdsNotDistinctException.class,
            () -> sqs.sendMessageBatch(ask -> ask.queueUrl(url).entries(twice)));
        sqs.purgeQueue(ask -> ask.queueUrl(url));
        refused(PurgeQueueInProgressException.class, () -> sqs.purgeQueue(ask -> ask.queueUrl(url)));
        sqs.deleteQueue(ask -> ask.queueUrl(url));
        var gone = refused(QueueDoesNotExistException.class, () -> sqs.deleteQueue(ask -> ask.queueUrl(url)));
        same(400, gone.statusCode());
        same("The specified queue does not exist.", gone.awsErrorDetails().errorMessage());
    }

    private String made(String name, Map<QueueAttributeName, String> attributes) {
        return sqs.createQueue(ask -> ask.queueName(prefix + name).attributes(attributes)).queueUrl();
    }

    private List<Message> received(String url, Consumer<ReceiveMessageRequest.Builder> more) {
        return sqs.receiveMessage(ask -> {
            ask.queueUrl(url).maxNumberOfMessages(10);
            more.accept(ask);
        }).messages();
    }

    private static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static <E extends SqsException> E refused(Class<E> kind, Story story) {
        try {
            story.tell();
        } catch (Exception error) {
            if (kind.isInstance(error)) {
                return kind.cast(error);
            }
            throw new AssertionError("not a " + kind.getSimpleName(), error);
        }
        throw new AssertionError("nothing was refused; expected " + kind.getSimpleName());
    }
}
