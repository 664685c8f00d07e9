package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/vta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const module = "github.com/kessai/kessai"

// code is the product's own packages, type-checked. What it imports from elsewhere is known by its types alone: the
// checks ask what the product calls, not what the AWS SDK does then.
type code struct {
	packages map[*types.Package]*packages.Package
	program  *ssa.Program
	graph    *callgraph.Graph
	mains    map[string]*ssa.Function // by folder
}

func loadCode() (code, error) {
	config := &packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile | packages.NeedModule}
	own, err := ownPackages()
	if err != nil {
		return code{}, err
	}
	loaded, err := packages.Load(config, own...)
	if err != nil {
		return code{}, fmt.Errorf("load the code: %w", err)
	}
	if packages.PrintErrors(loaded) > 0 {
		return code{}, fmt.Errorf("the code doesn't compile")
	}
	program, built := ssautil.Packages(loaded, ssa.InstantiateGenerics)
	program.Build()
	c := code{
		packages: map[*types.Package]*packages.Package{}, program: program, mains: map[string]*ssa.Function{},
		graph: vta.CallGraph(ssautil.AllFunctions(program), nil),
	}
	for i, p := range loaded {
		c.packages[p.Types] = p
		if folder, ok := strings.CutPrefix(p.PkgPath, module+"/functions/"); ok && p.Name == "main" {
			c.mains[folder] = built[i].Func("main")
		}
	}
	return c, nil
}

// ownPackages are the packages of the product that some function is made of.
func ownPackages() ([]string, error) {
	mains, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps}, "./functions/...")
	if err != nil {
		return nil, fmt.Errorf("list the code: %w", err)
	}
	var own []string
	packages.Visit(mains, nil, func(p *packages.Package) {
		if strings.HasPrefix(p.PkgPath, module+"/") {
			own = append(own, p.PkgPath)
		}
	})
	return own, nil
}

// reachable are the functions of the product that a function's program may run. What main hands to the Lambda runtime
// is called by reflection, which a call graph doesn't show, so it counts as called; and so does every function value
// that reachable code makes, for code elsewhere may call it.
func (c code) reachable(main *ssa.Function) map[*ssa.Function]bool {
	seen := map[*ssa.Function]bool{}
	var visit func(f *ssa.Function)
	visit = func(f *ssa.Function) {
		if f == nil || seen[f] {
			return
		}
		seen[f] = true
		if node := c.graph.Nodes[f]; node != nil {
			for _, edge := range node.Out {
				visit(edge.Callee.Func)
			}
		}
		for _, block := range f.Blocks {
			for _, instruction := range block.Instrs {
				c.visitValues(f, instruction, visit)
			}
		}
	}
	visit(main.Pkg.Func("init"))
	visit(main)
	return seen
}

func (c code) visitValues(f *ssa.Function, instruction ssa.Instruction, visit func(*ssa.Function)) {
	for _, operand := range instruction.Operands(nil) {
		switch value := (*operand).(type) {
		case *ssa.Function:
			visit(value)
		case *ssa.MakeClosure:
			visit(value.Fn.(*ssa.Function))
		}
	}
	handler, ok := instruction.(*ssa.MakeInterface)
	if !ok || f.Pkg == nil || f.Pkg.Pkg.Name() != "main" {
		return
	}
	if method := c.program.MethodSets.MethodSet(handler.X.Type()).Lookup(nil, "Invoke"); method != nil {
		visit(c.program.MethodValue(method))
	}
}

// facts are what a function's program needs from its surroundings.
type facts struct {
	needed    []string // "action resource", as in the template
	variables []string
}

// tables are the packages that keep something, with the table they keep it in.
var tables = map[string]string{
	module + "/internal/store/payments": "PaymentsTable",
	module + "/internal/inventory":      "InventoryTable",
	module + "/internal/order":          "OrdersTable",
	module + "/internal/notification":   "NotificationsTable",
}

// ownSecret stands for the secret that the function's SECRETS_ID names.
const ownSecret = "$SECRETS_ID"

// calls are the methods of AWS clients that the product may call outside of package dynamo, with the right they need.
var calls = map[string]string{
	"states.StartExecution":         "states:StartExecution arn:${AWS::Partition}:states:${AWS::Region}:${AWS::AccountId}:stateMachine:${AWS::StackName}-checkout",
	"events.PutEvents":              "events:PutEvents EventBus.Arn",
	"secretsmanager.GetSecretValue": "secretsmanager:GetSecretValue " + ownSecret,
}

// clients are the packages of those clients, by the name that IAM has for the service.
var clients = map[string]string{
	"github.com/aws/aws-sdk-go-v2/service/sfn":            "states",
	"github.com/aws/aws-sdk-go-v2/service/eventbridge":    "events",
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager": "secretsmanager",
}

func (c code) facts(folder string) (facts, error) {
	main := c.mains[folder]
	if main == nil {
		return facts{}, fmt.Errorf("no program in functions/%s", folder)
	}
	var found facts
	for f := range c.reachable(main) {
		if f.Object() != nil && f.Object().Pkg() != nil {
			if service, ok := clients[f.Object().Pkg().Path()]; ok {
				if right, ok := calls[service+"."+f.Name()]; ok {
					found.needed = append(found.needed, right)
				}
			}
		}
		p := c.packageOf(f)
		if p == nil || f.Syntax() == nil {
			continue
		}
		table := tables[p.PkgPath]
		ast.Inspect(f.Syntax(), func(node ast.Node) bool {
			if table != "" {
				found.needed = append(found.needed, storeRights(p.TypesInfo, node, table)...)
			}
			found.variables = append(found.variables, variable(p.TypesInfo, node)...)
			return true
		})
	}
	slices.Sort(found.needed)
	slices.Sort(found.variables)
	found.needed, found.variables = slices.Compact(found.needed), slices.Compact(found.variables)
	return found, nil
}

func (c code) packageOf(f *ssa.Function) *packages.Package {
	if f.Origin() != nil {
		f = f.Origin()
	}
	if f.Pkg == nil {
		return nil
	}
	return c.packages[f.Pkg.Pkg]
}

// storeRights tells what a piece of code asks of the table: the store's kinds of writes are DynamoDB's actions, also
// inside a transaction, which has no action of its own.
func storeRights(info *types.Info, node ast.Node, table string) []string {
	switch node := node.(type) {
	case *ast.Ident:
		return identifierRights(info.Uses[node], table)
	case *ast.CompositeLit:
		if isStore(info.TypeOf(node), "Write") && !names(node, "Kind") {
			return []string{"dynamodb:PutItem " + table + ".Arn"} // the zero kind
		}
	case *ast.CallExpr:
		selector, ok := ast.Unparen(node.Fun).(*ast.SelectorExpr)
		if !ok || !isStore(info.TypeOf(selector.X), "Table") {
			return nil
		}
		switch selector.Sel.Name {
		case "Get":
			return []string{"dynamodb:GetItem " + table + ".Arn"}
		case "Query":
			return []string{"dynamodb:Query " + table + ".Arn"}
		case "Scan":
			return []string{"dynamodb:Scan " + table + ".Arn"}
		}
	}
	return nil
}

func identifierRights(object types.Object, table string) []string {
	named, ok := object.(*types.Const)
	if !ok || named.Pkg() == nil || named.Pkg().Path() != module+"/internal/store" {
		return nil
	}
	actions := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "Check": "ConditionCheckItem"}
	if action, ok := actions[named.Name()]; ok {
		return []string{"dynamodb:" + action + " " + table + ".Arn"}
	}
	if named.Name() == "IndexDue" {
		return []string{"dynamodb:Query ${" + table + ".Arn}/index/due"}
	}
	return nil
}

func isStore(t types.Type, name string) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Name() == name && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == module+"/internal/store"
}

func names(literal *ast.CompositeLit, field string) bool {
	return slices.ContainsFunc(literal.Elts, func(element ast.Expr) bool {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return true // without names every field is there
		}
		key, ok := pair.Key.(*ast.Ident)
		return ok && key.Name == field
	})
}

// variable is the name of the environment variable that a call reads through package bootstrap, which alone reads any.
func variable(info *types.Info, node ast.Node) []string {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	pointer, ok := types.Unalias(info.TypeOf(selector.X)).(*types.Pointer)
	if !ok {
		return nil
	}
	named, ok := types.Unalias(pointer.Elem()).(*types.Named)
	if !ok || named.Obj().Name() != "Environment" || named.Obj().Pkg().Path() != module+"/internal/bootstrap" {
		return nil
	}
	value := info.Types[call.Args[0]].Value
	if value == nil || value.Kind() != constant.String || selector.Sel.Name == "fault" {
		return nil
	}
	return []string{constant.StringVal(value)}
}
