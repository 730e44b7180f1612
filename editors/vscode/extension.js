const { workspace, window } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const command = workspace.getConfiguration("xegpu").get("server");
  const selector = [{ language: "mlir" }, { language: "visaasm" }];
  client = new LanguageClient("xegpu", "XeGPU", { command }, { documentSelector: selector });
  try {
    await client.start();
  } catch (error) {
    window.showErrorMessage(`'${command}' does not start: ${error.message}. The setting 'xegpu.server' names the server.`);
  }
};

exports.deactivate = () => client?.stop();
