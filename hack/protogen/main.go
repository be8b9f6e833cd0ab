// Command protogen generates Go messages from .proto files without protoc. It compiles them with protocompile and
// generates the code with protoc-gen-go, both at the versions of go.mod. It leaves out services: a generated client
// would call methods under the name of our own proto package, and plugins serve them under another one.
//
//	protogen ROOT FILE.proto ...
//
// FILE and its imports are relative to ROOT. protogen writes FILE.pb.go beside FILE.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: protogen ROOT FILE.proto ...")
		os.Exit(2)
	}
	if err := generate(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func generate(ctx context.Context, root string, files []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard, // for the comments
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: proto.String("paths=source_relative")}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) { // each file after its imports
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range compiled {
		add(f)
	}
	for _, f := range request.ProtoFile {
		f.Service = nil
		if f.SourceCodeInfo != nil {
			f.SourceCodeInfo.Location = withoutServices(f.SourceCodeInfo.Location)
		}
	}
	plugin, err := protogen.Options{}.New(request)
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	response := plugin.Response()
	if response.Error != nil {
		return fmt.Errorf("generate: %s", response.GetError())
	}
	for _, f := range response.File {
		name := filepath.Join(root, filepath.FromSlash(f.GetName()))
		if err := os.WriteFile(name, []byte(f.GetContent()), 0o644); err != nil {
			return err
		}
		fmt.Println(strings.TrimPrefix(name, "./"))
	}
	return nil
}

// withoutServices removes the comments of services. In a file descriptor, field 6 holds the services.
func withoutServices(in []*descriptorpb.SourceCodeInfo_Location) []*descriptorpb.SourceCodeInfo_Location {
	var out []*descriptorpb.SourceCodeInfo_Location
	for _, l := range in {
		if len(l.Path) > 0 && l.Path[0] == 6 {
			continue
		}
		out = append(out, l)
	}
	return out
}
