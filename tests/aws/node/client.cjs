// The SDK of AWS for JavaScript against the server whose URL is given: a line for each story, "ok" or "failed" before its
// name, and what went wrong after it. Nothing but the URL is ours.
"use strict";

const assert = require("node:assert/strict");
const { createHash } = require("node:crypto");
const { setTimeout: sleep } = require("node:timers/promises");
const sdk = require("@aws-sdk/client-sqs");

const [url, prefix] = process.argv.slice(2);
const sqs = new sdk.SQSClient({
  endpoint: url,
  region: "eu-west-1",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
  maxAttempts: 1,
});
const ask = (name, input) => sqs.send(new sdk[`${name}Command`](input));
const md5 = (text) => createHash("md5").update(text).digest("hex");

async function made(name, Attributes = {}) {
  return (await ask("CreateQueue", { QueueName: `${prefix}${name}`, Attributes })).QueueUrl;
}

async function received(QueueUrl, more = {}) {
  return (await ask("ReceiveMessage", { QueueUrl, MaxNumberOfMessages: 10, ...more })).Messages ?? [];
}

const stories = {
  async "a queue is made, found and described"() {
    const QueueUrl = await made("described", { VisibilityTimeout: "77" });
    assert.equal((await ask("GetQueueUrl", { QueueName: `${prefix}described` })).QueueUrl, QueueUrl);
    const listed = await ask("ListQueues", { QueueNamePrefix: `${prefix}described` });
    assert.deepEqual(listed.QueueUrls, [QueueUrl]);
    await ask("TagQueue", { QueueUrl, Tags: { colour: "blue" } });
    assert.deepEqual((await ask("ListQueueTags", { QueueUrl })).Tags, { colour: "blue" });
    await ask("SetQueueAttributes", { QueueUrl, Attributes: { DelaySeconds: "5" } });
    const asked = { QueueUrl, AttributeNames: ["VisibilityTimeout", "DelaySeconds"] };
    const { Attributes } = await ask("GetQueueAttributes", asked);
    assert.deepEqual(Attributes, { VisibilityTimeout: "77", DelaySeconds: "5" });
  },

  async "a message arrives with its attributes and checksums"() {
    const QueueUrl = await made("attributes");
    const MessageBody = "grüße, 世界 🦆 <&>\r\n";
    const MessageAttributes = {
      text: { DataType: "String", StringValue: "one & two" },
      number: { DataType: "Number.int", StringValue: "-7.50" },
      bytes: { DataType: "Binary", BinaryValue: Uint8Array.of(0, 255, 128, 10) },
    };
    // The SDK compares the checksums of bodies by itself, on the way in and out, and raises if they differ.
    const sent = await ask("SendMessage", { QueueUrl, MessageBody, MessageAttributes });
    assert.equal(sent.MD5OfMessageBody, md5(MessageBody));
    const wanted = { MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All"] };
    const [message] = await received(QueueUrl, wanted);
    assert.equal(message.MessageId, sent.MessageId);
    assert.equal(message.Body, MessageBody);
    assert.equal(message.MD5OfMessageAttributes, sent.MD5OfMessageAttributes);
    assert.equal(message.Attributes.ApproximateReceiveCount, "1");
    const { text, number, bytes } = message.MessageAttributes;
    assert.deepEqual([text.DataType, text.StringValue], ["String", "one & two"]);
    assert.deepEqual([number.DataType, number.StringValue], ["Number.int", "-7.50"]);
    assert.deepEqual([bytes.DataType, [...bytes.BinaryValue]], ["Binary", [0, 255, 128, 10]]);
  },

  async "of a batch the bad entry alone fails"() {
    const QueueUrl = await made("batch");
    const Entries = [...Array(10).keys()].map((number) => ({ Id: `e${number}`, MessageBody: `body ${number}` }));
    Entries[3].DelaySeconds = 901;
    const sent = await ask("SendMessageBatch", { QueueUrl, Entries });
    assert.deepEqual(sent.Failed.map((entry) => [entry.Id, entry.SenderFault]), [["e3", true]]);
    assert.equal(sent.Successful.length, 9);
    const messages = await received(QueueUrl);
    const bodies = messages.map((message) => message.Body).sort();
    assert.deepEqual(bodies, [0, 1, 2, 4, 5, 6, 7, 8, 9].map((number) => `body ${number}`));
    const handles = messages.map((message, number) => ({ Id: `${number}`, ReceiptHandle: message.ReceiptHandle }));
    const deleted = await ask("DeleteMessageBatch", { QueueUrl, Entries: handles });
    assert.equal(deleted.Successful.length, 9);
  },

  async "a long poll is answered when something comes"() {
    const QueueUrl = await made("poll");
    const waiting = received(QueueUrl, { WaitTimeSeconds: 20 });
    await sleep(300);
    const began = performance.now();
    await ask("SendMessage", { QueueUrl, MessageBody: "at last" });
    assert.deepEqual((await waiting).map((message) => message.Body), ["at last"]);
    assert.ok(performance.now() - began < 10_000);
  },

  async "released it comes again at once and deleted never"() {
    const QueueUrl = await made("visibility");
    await ask("SendMessage", { QueueUrl, MessageBody: "again" });
    const [first] = await received(QueueUrl, { VisibilityTimeout: 600 });
    assert.deepEqual(await received(QueueUrl), []);
    const released = { QueueUrl, ReceiptHandle: first.ReceiptHandle, VisibilityTimeout: 0 };
    await ask("ChangeMessageVisibility", released);
    const [second] = await received(QueueUrl, {
      VisibilityTimeout: 0, MessageSystemAttributeNames: ["ApproximateReceiveCount"],
    });
    assert.equal(second.MessageId, first.MessageId);
    assert.notEqual(second.ReceiptHandle, first.ReceiptHandle);
    assert.equal(second.Attributes.ApproximateReceiveCount, "2");
    await ask("DeleteMessage", { QueueUrl, ReceiptHandle: second.ReceiptHandle });
    assert.deepEqual(await received(QueueUrl), []);
  },

  async "fifo keeps the order of a group and drops what is sent twice"() {
    const QueueUrl = await made("order.fifo", { FifoQueue: "true" });
    const numbers = [];
    for (const key of ["1", "2", "2", "3"]) {
      const sent = await ask("SendMessage", {
        QueueUrl, MessageBody: `body ${key}`, MessageGroupId: "group", MessageDeduplicationId: key,
      });
      numbers.push(BigInt(sent.SequenceNumber));
    }
    assert.equal(numbers[1], numbers[2]);
    assert.ok(numbers[0] < numbers[1] && numbers[2] < numbers[3]);
    const [first] = await received(QueueUrl, {
      MaxNumberOfMessages: 1, VisibilityTimeout: 600, MessageSystemAttributeNames: ["All"],
    });
    assert.deepEqual([first.Body, first.Attributes.MessageGroupId], ["body 1", "group"]);
    assert.deepEqual(await received(QueueUrl), [], "the group is blocked while one of it is in flight");
    await ask("DeleteMessage", { QueueUrl, ReceiptHandle: first.ReceiptHandle });
    assert.deepEqual((await received(QueueUrl)).map((message) => message.Body), ["body 2", "body 3"]);
  },

  async "errors are of the classes that the SDK has for them"() {
    const QueueUrl = await made("errors", { VisibilityTimeout: "60" });
    const absent = { QueueUrl: `${QueueUrl}-absent`, MessageBody: "x" };
    await assert.rejects(ask("SendMessage", absent), sdk.QueueDoesNotExist);
    await assert.rejects(ask("GetQueueUrl", { QueueName: `${prefix}absent` }), sdk.QueueDoesNotExist);
    const wrong = { QueueUrl, ReceiptHandle: "wrong" };
    await assert.rejects(ask("DeleteMessage", wrong), sdk.ReceiptHandleIsInvalid);
    const other = { QueueName: `${prefix}errors`, Attributes: { VisibilityTimeout: "61" } };
    await assert.rejects(ask("CreateQueue", other), sdk.QueueNameExists);
    await assert.rejects(ask("SendMessage", { QueueUrl, MessageBody: "\u0000" }), sdk.InvalidMessageContents);
    const twice = [{ Id: "a", MessageBody: "1" }, { Id: "a", MessageBody: "2" }];
    const batch = ask("SendMessageBatch", { QueueUrl, Entries: twice });
    await assert.rejects(batch, sdk.BatchEntryIdsNotDistinct);
    await ask("PurgeQueue", { QueueUrl });
    await assert.rejects(ask("PurgeQueue", { QueueUrl }), sdk.PurgeQueueInProgress);
    await ask("DeleteQueue", { QueueUrl });
    await assert.rejects(ask("DeleteQueue", { QueueUrl }), (error) => {
      assert.ok(error instanceof sdk.QueueDoesNotExist && error.$fault === "client");
      assert.equal(error.$metadata.httpStatusCode, 400);
      return true;
    });
  },
};

async function main() {
  for (const [name, tell] of Object.entries(stories)) {
    try {
      await tell();
      console.log(`ok\t${name}`);
    } catch (error) {
      console.log(`failed\t${name}\t${String(error.stack ?? error).replaceAll("\n", " | ")}`);
    }
  }
}

main();
